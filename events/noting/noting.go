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

// Registry passes every call on, and notes what may have changed. A call fails when its change could not be noted;
// repeating it notes it. Only what a full list has no room for is let go, for that is no reason to turn clients away.
type Registry struct {
	registry.Registry
	recorder Recorder
	log      zerolog.Logger
}

var _ registry.Registry = (*Registry)(nil)

// New has the changes of r noted. log hears once a minute when there is no room.
func New(r registry.Registry, to Recorder, log zerolog.Logger) *Registry {
	return &Registry{r, to, log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Minute})}
}

// ReleaseUser implements [registry.Registry].
func (r *Registry) ReleaseUser(ctx context.Context, user, client string, generation int64) error {
	return r.user(ctx, user, r.Registry.ReleaseUser(ctx, user, client, generation))
}

// ForgetUser implements [registry.Registry].
func (r *Registry) ForgetUser(ctx context.Context, user, client string, generation int64) error {
	return r.user(ctx, user, r.Registry.ForgetUser(ctx, user, client, generation))
}

// BindChannel implements [registry.Registry].
func (r *Registry) BindChannel(ctx context.Context, server, channel string) error {
	return r.channel(ctx, channel, r.Registry.BindChannel(ctx, server, channel))
}

// BindUsers implements [registry.Registry].
func (r *Registry) BindUsers(ctx context.Context, list []registry.UserBinding) []error {
	users := make([]string, len(list))
	for i, b := range list {
		users[i] = b.User
	}
	return r.note(ctx, r.recorder.UsersChanged, users, r.Registry.BindUsers(ctx, list))
}

// BindChannels implements [registry.Registry].
func (r *Registry) BindChannels(ctx context.Context, server string, channels []string) []error {
	return r.note(ctx, r.recorder.ChannelsChanged, channels, r.Registry.BindChannels(ctx, server, channels))
}

// UnbindChannel implements [registry.Registry].
func (r *Registry) UnbindChannel(ctx context.Context, server, channel string) error {
	return r.channel(ctx, channel, r.Registry.UnbindChannel(ctx, server, channel))
}

func (r *Registry) user(ctx context.Context, user string, err error) error {
	return r.note(ctx, r.recorder.UsersChanged, []string{user}, []error{err})[0]
}

func (r *Registry) channel(ctx context.Context, channel string, err error) error {
	return r.note(ctx, r.recorder.ChannelsChanged, []string{channel}, []error{err})[0]
}

// note has changed note the names whose call did not fail, in one call, and adds to errs what could
// not be noted.
func (r *Registry) note(ctx context.Context, changed func(context.Context, ...string) []error, names []string, errs []error) []error {
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
