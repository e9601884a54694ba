package account

import (
	"context"

	"switchboard/broker"
	"switchboard/internal/redispipe"
	"switchboard/internal/state"
	"switchboard/queue"
)

// Store keeps the states of the channels of accounts. [HostStore] and [RedisStore] return one.
type Store interface {
	// Change changes the state of a channel and returns the id of the change. If the update is
	// refused, the error is a *state.Refusal. If durable is set and no replica has the change in
	// time, the error is queue.ErrNotReplicated.
	Change(ctx context.Context, channel string, u *state.Update, durable bool) (int64, error)
	// ReadStates reads parts of states, in one round trip.
	ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage]
}

// HostStore returns the store of the broker.
func HostStore(h *broker.Host) Store { return hostStore{h} }

type hostStore struct{ *broker.Host }

// Change implements Store.
func (s hostStore) Change(ctx context.Context, channel string, u *state.Update, durable bool) (int64, error) {
	done, err := s.Host.Change(ctx, channel, u, broker.ChangeOptions{Durable: durable})
	return done.ID, err
}

// RedisStore returns a store in a Redis of its own. prefix is the prefix of all keys.
func RedisStore(pipe *redispipe.Pipe, prefix string) Store {
	return redisStore{queue.NewRedis(pipe, queue.Options{Prefix: prefix})}
}

type redisStore struct{ *queue.Redis }

// Change implements Store.
func (s redisStore) Change(ctx context.Context, channel string, u *state.Update, durable bool) (int64, error) {
	done, err := s.AppendChannel(ctx, queue.ChannelPush{Channel: channel, Update: u, Durable: durable})
	return done.ID, err
}
