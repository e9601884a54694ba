package account

import (
	"context"

	"switchboard/broker/extension"
	"switchboard/internal/redispipe"
	"switchboard/internal/state"
	"switchboard/queue"
)

// Store keeps the states of the channels of accounts. [HostStore] and [RedisStore] return one.
type Store interface {
	// Change changes the state of a channel. If the update is refused, the error is a
	// *state.Refusal. If durable is set and no replica has the change in time, the error is
	// queue.ErrNotReplicated, and the result is valid.
	Change(ctx context.Context, channel string, u *state.Update, durable bool) (Changed, error)
	// ReadStates reads parts of states, in one round trip.
	ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage]
}

// Changed is the result of a change.
type Changed struct {
	ID    int64
	Clock int64 // the store's clock, from which the leases of the change count, Unix ms
}

// HostStore returns the store of the broker.
func HostStore(h *extension.Host) Store { return hostStore{h} }

type hostStore struct{ *extension.Host }

// Change implements Store.
func (s hostStore) Change(ctx context.Context, channel string, u *state.Update, durable bool) (Changed, error) {
	done, err := s.Host.Change(ctx, channel, u, extension.ChangeOptions{Durable: durable})
	return Changed{done.ID, done.Clock}, err
}

// RedisStore returns a store in a Redis of its own. prefix is the prefix of all keys.
func RedisStore(pipe *redispipe.Pipe, prefix string) Store {
	return redisStore{queue.NewRedis(pipe, queue.Options{Prefix: prefix})}
}

type redisStore struct{ *queue.Redis }

// Change implements Store.
func (s redisStore) Change(ctx context.Context, channel string, u *state.Update, durable bool) (Changed, error) {
	// Cap: the log of a channel would otherwise keep records that were replaced, such as that of a
	// former password.
	done, err := s.AppendChannel(ctx, queue.ChannelPush{Channel: channel, Update: u, Durable: durable, Cap: maxLogged})
	return Changed{done.ID, done.Clock}, err
}
