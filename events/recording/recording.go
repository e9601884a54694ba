// Package recording wraps a registry so that an [events.Recorder] is called after each change of a
// binding: by a session, by a sweep after an outage of the store, or by a janitor that cleans up
// after a dead server. So the callers of a registry need not know of events.
package recording

import (
	"context"
	"errors"
	"time"

	"github.com/rs/zerolog"

	"switchboard/events"
	"switchboard/registry"
)

// Recorder schedules checks of users and channels. A check makes an event if the user or channel
// differs from what was last reported. [events.Recorder] implements it.
type Recorder interface {
	UsersChanged(ctx context.Context, users ...string) []error
	ChannelsChanged(ctx context.Context, channels ...string) []error
}

// Registry has the methods of a registry that may change whether a user is online or a channel is
// occupied. [registry.Redis] and [registry.Memory] implement it.
type Registry interface {
	BindUsers(ctx context.Context, list []registry.UserBinding) []error
	ReleaseUser(ctx context.Context, user, client string, generation int64) (watchers []string, err error)
	ForgetUser(ctx context.Context, user, client string, generation int64) error
	BindChannel(ctx context.Context, server, channel string) error
	BindChannels(ctx context.Context, server string, channels []string) []error
	// RebindChannels adds the channels for which list is true to the list of channels, see
	// registry.Redis.
	RebindChannels(ctx context.Context, server string, channels []string, list func(channel string) bool) (restored []string, errs []error)
	UnbindChannel(ctx context.Context, server, channel string) error
}

// Wrapper calls a registry and then the recorder. A call fails if the recorder fails; repeating the
// call repeats both. Only [events.ErrFull] is logged instead of returned: that there is no room for
// another check on the due list is no reason to reject clients.
type Wrapper struct {
	registry Registry
	recorder Recorder
	log      zerolog.Logger
}

var _ Registry = (*Wrapper)(nil)

// Wrap returns a Registry that calls r and then the recorder. It logs at most once a minute that a
// due list is full.
func Wrap(r Registry, recorder Recorder, log zerolog.Logger) *Wrapper {
	return &Wrapper{r, recorder, log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Minute})}
}

// ReleaseUser implements [Registry].
func (w *Wrapper) ReleaseUser(ctx context.Context, user, client string, generation int64) (watchers []string, err error) {
	watchers, err = w.registry.ReleaseUser(ctx, user, client, generation)
	return watchers, w.recordUser(ctx, user, err)
}

// ForgetUser implements [Registry].
func (w *Wrapper) ForgetUser(ctx context.Context, user, client string, generation int64) error {
	return w.recordUser(ctx, user, w.registry.ForgetUser(ctx, user, client, generation))
}

// BindChannel implements [Registry].
func (w *Wrapper) BindChannel(ctx context.Context, server, channel string) error {
	return w.recordChannel(ctx, channel, w.registry.BindChannel(ctx, server, channel))
}

// BindUsers implements [Registry].
func (w *Wrapper) BindUsers(ctx context.Context, list []registry.UserBinding) []error {
	users := make([]string, len(list))
	for i, b := range list {
		users[i] = b.User
	}
	return w.record(ctx, w.recorder.UsersChanged, users, w.registry.BindUsers(ctx, list))
}

// BindChannels implements [Registry].
func (w *Wrapper) BindChannels(ctx context.Context, server string, channels []string) []error {
	return w.record(ctx, w.recorder.ChannelsChanged, channels, w.registry.BindChannels(ctx, server, channels))
}

// RebindChannels implements [Registry].
func (w *Wrapper) RebindChannels(ctx context.Context, server string, channels []string, list func(channel string) bool) (restored []string, errs []error) {
	restored, errs = w.registry.RebindChannels(ctx, server, channels, list)
	return restored, w.record(ctx, w.recorder.ChannelsChanged, channels, errs)
}

// UnbindChannel implements [Registry].
func (w *Wrapper) UnbindChannel(ctx context.Context, server, channel string) error {
	return w.recordChannel(ctx, channel, w.registry.UnbindChannel(ctx, server, channel))
}

func (w *Wrapper) recordUser(ctx context.Context, user string, err error) error {
	return w.record(ctx, w.recorder.UsersChanged, []string{user}, []error{err})[0]
}

func (w *Wrapper) recordChannel(ctx context.Context, channel string, err error) error {
	return w.record(ctx, w.recorder.ChannelsChanged, []string{channel}, []error{err})[0]
}

// record calls changed once, with the names whose call succeeded. errs are the errors of the
// registry in the order of the names. record adds the errors of the recorder to them and returns
// them.
func (w *Wrapper) record(ctx context.Context, changed func(context.Context, ...string) []error, names []string, errs []error) []error {
	succeeded, indexes := make([]string, 0, len(names)), make([]int, 0, len(names))
	for i, err := range errs {
		if err == nil {
			succeeded, indexes = append(succeeded, names[i]), append(indexes, i)
		}
	}
	if len(succeeded) == 0 {
		return errs
	}
	for k, err := range changed(ctx, succeeded...) {
		if errors.Is(err, events.ErrFull) {
			w.log.Error().Err(err).Msg("changes are not recorded for webhooks: the due list is full. Is a janitor running?")
			continue
		}
		errs[indexes[k]] = err
	}
	return errs
}
