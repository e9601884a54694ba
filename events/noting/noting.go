// Package noting is a registry whose changes are noted for the backend: every binding and every end of one, of
// sessions, of sweeps after the store's trouble, and of a janitor that frees what a dead server held. So nobody who uses a
// registry has to know of events.
package noting

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"switchboard/events"
	"switchboard/registry"
)

// Recorder is what is needed of [events.Recorder].
type Recorder interface {
	UserChanged(ctx context.Context, user string) error
	ChannelChanged(ctx context.Context, channel string) error
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

// BindUser implements [registry.Registry].
func (r *Registry) BindUser(ctx context.Context, user string, b registry.Binding) error {
	return r.user(ctx, user, r.Registry.BindUser(ctx, user, b))
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
	return eachOf(r.Registry.BindUsers(ctx, list), func(i int, err error) error { return r.user(ctx, list[i].User, err) })
}

// BindChannels implements [registry.Registry].
func (r *Registry) BindChannels(ctx context.Context, server string, channels []string) []error {
	return eachOf(r.Registry.BindChannels(ctx, server, channels), func(i int, err error) error { return r.channel(ctx, channels[i], err) })
}

// eachOf notes all at once: concurrent notes share round trips.
func eachOf(errs []error, note func(i int, err error) error) []error {
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = note(i, errs[i]) })
	}
	wg.Wait()
	return errs
}

// UnbindChannel implements [registry.Registry].
func (r *Registry) UnbindChannel(ctx context.Context, server, channel string) error {
	return r.channel(ctx, channel, r.Registry.UnbindChannel(ctx, server, channel))
}

func (r *Registry) user(ctx context.Context, user string, err error) error {
	if err != nil {
		return err
	}
	return r.noted(r.recorder.UserChanged(ctx, user))
}

func (r *Registry) channel(ctx context.Context, channel string, err error) error {
	if err != nil {
		return err
	}
	return r.noted(r.recorder.ChannelChanged(ctx, channel))
}

func (r *Registry) noted(err error) error {
	if errors.Is(err, events.ErrFull) {
		r.log.Error().Err(err).Msg("what happens is not noted for the backend; is there a janitor?")
		return nil
	}
	return err
}
