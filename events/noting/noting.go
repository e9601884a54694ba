// Package noting is a registry whose changes are noted for the backend: every binding and every end of one, of
// sessions, of sweeps after the store's trouble, and of a janitor that frees what a dead server held. So nobody who uses a
// registry has to know of events.
package noting

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"switchboard/events"
	"switchboard/registry"
)

// Recorder is what is needed of [events.Recorder].
type Recorder interface {
	UsersChanged(ctx context.Context, users ...string) []error
	ChannelsChanged(ctx context.Context, channels ...string) []error
}

// Registry is the calls of a registry that may change whether a user is online or a channel is
// occupied: [registry.Redis] or [registry.Memory].
type Registry interface {
	BindUsers(ctx context.Context, list []registry.UserBinding) []error
	ReleaseUser(ctx context.Context, user, client string, generation int64) error
	ForgetUser(ctx context.Context, user, client string, generation int64) error
	BindChannel(ctx context.Context, server, channel string) error
	BindChannels(ctx context.Context, server string, channels []string) []error
	UnbindChannel(ctx context.Context, server, channel string) error
}

// Noting passes every call on, and notes what may have changed. A call fails when its change could not be noted;
// repeating it notes it. Only what a full list has no room for is let go, for that is no reason to turn clients away.
type Noting struct {
	registry Registry
	recorder Recorder
	log      zerolog.Logger
}

var _ Registry = (*Noting)(nil)

// New has the changes of r noted. log hears once a minute when there is no room.
func New(r Registry, to Recorder, log zerolog.Logger) *Noting {
	return &Noting{r, to, log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Minute})}
}

// ReleaseUser implements [Registry].
func (r *Noting) ReleaseUser(ctx context.Context, user, client string, generation int64) error {
	return r.user(ctx, user, r.registry.ReleaseUser(ctx, user, client, generation))
}

// ForgetUser implements [Registry].
func (r *Noting) ForgetUser(ctx context.Context, user, client string, generation int64) error {
	return r.user(ctx, user, r.registry.ForgetUser(ctx, user, client, generation))
}

// BindChannel implements [Registry].
func (r *Noting) BindChannel(ctx context.Context, server, channel string) error {
	return r.channel(ctx, channel, r.registry.BindChannel(ctx, server, channel))
}

// BindUsers implements [Registry].
func (r *Noting) BindUsers(ctx context.Context, list []registry.UserBinding) []error {
	users := make([]string, len(list))
	for i, b := range list {
		users[i] = b.User
	}
	return r.note(ctx, r.recorder.UsersChanged, users, r.registry.BindUsers(ctx, list))
}

// BindChannels implements [Registry].
func (r *Noting) BindChannels(ctx context.Context, server string, channels []string) []error {
	return r.note(ctx, r.recorder.ChannelsChanged, channels, r.registry.BindChannels(ctx, server, channels))
}

// UnbindChannel implements [Registry].
func (r *Noting) UnbindChannel(ctx context.Context, server, channel string) error {
	return r.channel(ctx, channel, r.registry.UnbindChannel(ctx, server, channel))
}

func (r *Noting) user(ctx context.Context, user string, err error) error {
	return r.note(ctx, r.recorder.UsersChanged, []string{user}, []error{err})[0]
}

func (r *Noting) channel(ctx context.Context, channel string, err error) error {
	return r.note(ctx, r.recorder.ChannelsChanged, []string{channel}, []error{err})[0]
}

// note has changed note the names whose call did not fail, in one call, and adds to errs what could
// not be noted.
func (r *Noting) note(ctx context.Context, changed func(context.Context, ...string) []error, names []string, errs []error) []error {
	done, of := make([]string, 0, len(names)), make([]int, 0, len(names))
	for i, err := range errs {
		if err == nil {
			done, of = append(done, names[i]), append(of, i)
		}
	}
	if len(done) == 0 {
		return errs
	}
	for k, err := range changed(ctx, done...) {
		if errors.Is(err, events.ErrFull) {
			r.log.Error().Err(err).Msg("what happens is not noted for the backend; is there a janitor?")
			continue
		}
		errs[of[k]] = err
	}
	return errs
}
