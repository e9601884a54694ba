package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"switchboard/queue"
	"switchboard/registry"
)

// store is registry and queue as one process sees them: every call parks.
type store struct {
	w    *world
	node *node // nil for the janitor
	who  string
}

func ask[T any](ctx context.Context, s *store, op string, a about, do func(context.Context) (T, error), args ...any) (T, error) {
	c := &call{node: s.node, who: s.who, op: op, about: a, args: strings.TrimSuffix(fmt.Sprintln(args...), "\n")}
	c.do = func() (any, error) { return do(context.Background()) }
	value, err := s.w.park(ctx, c)
	if err != nil {
		var zero T
		return zero, err
	}
	return value.(T), nil
}

func tell(ctx context.Context, s *store, op string, a about, do func(context.Context) error, args ...any) error {
	_, err := ask(ctx, s, op, a, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) }, args...)
	return err
}

// found is the answer of calls that say two things.
type found[T any] struct {
	value T
	ok    bool
}

func (s *store) Join(ctx context.Context, r registry.Server) error {
	return tell(ctx, s, "Join", about{server: r.ID}, func(ctx context.Context) error { return s.w.registry.Join(ctx, r) }, r.ID)
}

func (s *store) Beat(ctx context.Context, r registry.Server) error {
	return tell(ctx, s, "Beat", about{server: r.ID}, func(ctx context.Context) error { return s.w.registry.Beat(ctx, r) }, r.ID)
}

func (s *store) Servers(ctx context.Context) ([]registry.Server, error) {
	return ask(ctx, s, "Servers", about{}, s.w.registry.Servers)
}

func (s *store) BindChannel(ctx context.Context, server, channel string) error {
	return tell(ctx, s, "BindChannel", about{channel: channel, server: server}, func(ctx context.Context) error {
		return s.w.registry.BindChannel(ctx, server, channel)
	}, server, channel)
}

func (s *store) BindChannels(ctx context.Context, server string, channels []string) []error {
	return errorsOf(together(ctx, channels, func(ctx context.Context, channel string) (struct{}, error) {
		return struct{}{}, s.BindChannel(ctx, server, channel)
	}))
}

func (s *store) UnbindChannel(ctx context.Context, server, channel string) error {
	return tell(ctx, s, "UnbindChannel", about{channel: channel}, func(ctx context.Context) error {
		return s.w.registry.UnbindChannel(ctx, server, channel)
	}, server, channel)
}

func (s *store) ChannelServers(ctx context.Context, channel string) ([]string, error) {
	return ask(ctx, s, "ChannelServers", about{}, func(ctx context.Context) ([]string, error) {
		return s.w.registry.ChannelServers(ctx, channel)
	}, channel)
}

func (s *store) holdClient(ctx context.Context, server, client string) error {
	return tell(ctx, s, "HoldClient", about{client: client, server: server}, func(ctx context.Context) error {
		return s.w.registry.HoldClients(ctx, server, []string{client})
	}, server, client)
}

func (s *store) HoldClients(ctx context.Context, server string, clients []string) error {
	return errors.Join(errorsOf(together(ctx, clients, func(ctx context.Context, client string) (struct{}, error) {
		return struct{}{}, s.holdClient(ctx, server, client)
	}))...)
}

func (s *store) DropClient(ctx context.Context, server, client string) error {
	return tell(ctx, s, "DropClient", about{client: client}, func(ctx context.Context) error {
		return s.w.registry.DropClient(ctx, server, client)
	}, server, client)
}

func (s *store) bindUser(ctx context.Context, b registry.UserBinding) error {
	return tell(ctx, s, "BindUser", about{user: b.User, client: b.Client, generation: b.Generation}, func(ctx context.Context) error {
		return s.w.registry.BindUsers(ctx, []registry.UserBinding{b})[0]
	}, b.User, b.Client, b.Server, b.Generation)
}

func (s *store) BindUsers(ctx context.Context, list []registry.UserBinding) []error {
	return errorsOf(together(ctx, list, func(ctx context.Context, b registry.UserBinding) (struct{}, error) {
		return struct{}{}, s.bindUser(ctx, b)
	}))
}

func (s *store) ReleaseUser(ctx context.Context, user, client string, generation int64) error {
	return tell(ctx, s, "ReleaseUser", about{user: user, client: client, generation: generation}, func(ctx context.Context) error {
		return s.w.registry.ReleaseUser(ctx, user, client, generation)
	}, user, client, generation)
}

func (s *store) ForgetUser(ctx context.Context, user, client string, generation int64) error {
	return tell(ctx, s, "ForgetUser", about{user: user, client: client, generation: generation}, func(ctx context.Context) error {
		return s.w.registry.ForgetUser(ctx, user, client, generation)
	}, user, client, generation)
}

func (s *store) User(ctx context.Context, user string) ([]registry.Binding, error) {
	return ask(ctx, s, "User", about{}, func(ctx context.Context) ([]registry.Binding, error) { return s.w.registry.User(ctx, user) }, user)
}

func (s *store) bind(ctx context.Context, c queue.Claim) (queue.Bound, error) {
	return ask(ctx, s, "Bind", about{client: c.Client, owner: c.Server}, func(ctx context.Context) (queue.Bound, error) {
		o := s.w.queue.BindClients(ctx, []queue.Claim{c})[0]
		return o.Value, o.Err
	}, c.Client, c.User, c.Server)
}

func (s *store) BindClients(ctx context.Context, claims []queue.Claim) []queue.Outcome[queue.Bound] {
	return together(ctx, claims, s.bind)
}

func (s *store) refresh(ctx context.Context, server string, h queue.Held) error {
	return tell(ctx, s, "Refresh", about{client: h.Client, owner: server, generation: h.Generation}, func(ctx context.Context) error {
		return s.w.queue.RefreshClients(ctx, server, []queue.Held{h})[0]
	}, h.Client, h.User, server, h.Generation)
}

func (s *store) RefreshClients(ctx context.Context, server string, list []queue.Held) []error {
	return errorsOf(together(ctx, list, func(ctx context.Context, h queue.Held) (struct{}, error) {
		return struct{}{}, s.refresh(ctx, server, h)
	}))
}

func (s *store) Unbind(ctx context.Context, client string, generation int64) error {
	return tell(ctx, s, "Unbind", about{client: client, generation: generation}, func(ctx context.Context) error {
		return s.w.queue.Unbind(ctx, client, generation)
	}, client, generation)
}

func (s *store) Client(ctx context.Context, client string) (queue.Client, bool, error) {
	f, err := ask(ctx, s, "Client", about{client: client}, func(ctx context.Context) (found[queue.Client], error) {
		c, known, err := s.w.queue.Client(ctx, client)
		return found[queue.Client]{c, known}, err
	}, client)
	return f.value, f.ok, err
}

func (s *store) Window(ctx context.Context, client string, generation, after int64, limit int) (queue.Page, error) {
	return ask(ctx, s, "Window", about{client: client, generation: generation}, func(ctx context.Context) (queue.Page, error) {
		return s.w.queue.Window(ctx, client, generation, after, limit)
	}, client, generation, after)
}

func (s *store) Ack(ctx context.Context, client string, generation, id int64) (int, error) {
	return ask(ctx, s, "Ack", about{client: client, generation: generation}, func(ctx context.Context) (int, error) {
		return s.w.queue.Ack(ctx, client, generation, id)
	}, client, generation, id)
}

func (s *store) Acks(ctx context.Context, acks []queue.Ack) []queue.Outcome[int] {
	return together(ctx, acks, func(ctx context.Context, a queue.Ack) (int, error) { return s.Ack(ctx, a.Client, a.Generation, a.ID) })
}

func (s *store) ReadChannel(ctx context.Context, channel string, after int64, limit int) (queue.Page, error) {
	return ask(ctx, s, "ReadChannel", about{channel: channel}, func(ctx context.Context) (queue.Page, error) {
		return s.w.queue.ReadChannel(ctx, channel, after, limit)
	}, channel, after, limit)
}

func (s *store) ReadChannels(ctx context.Context, reads []queue.ChannelRead) []queue.Outcome[queue.Page] {
	return together(ctx, reads, func(ctx context.Context, c queue.ChannelRead) (queue.Page, error) {
		return s.ReadChannel(ctx, c.Channel, c.After, c.Limit)
	})
}

func (s *store) KeepPositions(context.Context, []string) error {
	panic("sim: no position is forgotten")
}

func (s *store) PushRequest(context.Context, queue.Request) error { panic("sim: nobody requests") }

func (s *store) AppendChannel(ctx context.Context, push queue.ChannelPush) (queue.Appended, error) {
	return ask(ctx, s, "AppendChannel", about{channel: push.Channel}, func(ctx context.Context) (queue.Appended, error) {
		return s.w.queue.AppendChannel(ctx, push)
	}, push.Channel, string(push.Data))
}

func (s *store) AppendClient(ctx context.Context, push queue.ClientPush) (queue.ClientAppended, error) {
	return ask(ctx, s, "AppendClient", about{client: push.Client}, func(ctx context.Context) (queue.ClientAppended, error) {
		return s.w.queue.AppendClient(ctx, push)
	}, push.Client, string(push.Data))
}

func (s *store) AppendChannels(ctx context.Context, pushes []queue.ChannelPush) []queue.Outcome[queue.Appended] {
	return together(ctx, pushes, s.AppendChannel)
}

func (s *store) AppendClients(ctx context.Context, pushes []queue.ClientPush) []queue.Outcome[queue.ClientAppended] {
	return together(ctx, pushes, s.AppendClient)
}

// together has each call park by itself, since each may fail alone and in any order.
func together[P, T any](ctx context.Context, pushes []P, one func(context.Context, P) (T, error)) []queue.Outcome[T] {
	out := make([]queue.Outcome[T], len(pushes))
	var calls sync.WaitGroup
	for i, push := range pushes {
		calls.Go(func() { out[i].Value, out[i].Err = one(ctx, push) })
	}
	calls.Wait()
	return out
}

func errorsOf(outcomes []queue.Outcome[struct{}]) []error {
	errs := make([]error, len(outcomes))
	for i, o := range outcomes {
		errs[i] = o.Err
	}
	return errs
}

func (s *store) ConfirmChannel(ctx context.Context, channel string, id int64) (*queue.Marker, error) {
	return ask(ctx, s, "ConfirmChannel", about{channel: channel}, func(ctx context.Context) (*queue.Marker, error) {
		return s.w.queue.ConfirmChannel(ctx, channel, id)
	}, channel, id)
}

func (s *store) ConfirmClient(ctx context.Context, client string, id int64) (*queue.Marker, error) {
	return ask(ctx, s, "ConfirmClient", about{client: client}, func(ctx context.Context) (*queue.Marker, error) {
		return s.w.queue.ConfirmClient(ctx, client, id)
	}, client, id)
}

// What only the janitor calls.

func (s *store) Listed(ctx context.Context) ([]string, error) {
	return ask(ctx, s, "Listed", about{}, s.w.registry.Listed)
}

func (s *store) Lease(ctx context.Context, server string) (registry.Server, bool, error) {
	f, err := ask(ctx, s, "Lease", about{}, func(ctx context.Context) (found[registry.Server], error) {
		r, live, err := s.w.registry.Lease(ctx, server)
		return found[registry.Server]{r, live}, err
	}, server)
	return f.value, f.ok, err
}

func (s *store) Bury(ctx context.Context, server string) (bool, error) {
	return ask(ctx, s, "Bury", about{server: server}, func(ctx context.Context) (bool, error) { return s.w.registry.Bury(ctx, server) }, server)
}

func (s *store) Buried(ctx context.Context, server string) (bool, error) {
	return ask(ctx, s, "Buried", about{}, func(ctx context.Context) (bool, error) { return s.w.registry.Buried(ctx, server) }, server)
}

func (s *store) Forget(ctx context.Context, server string) error {
	return tell(ctx, s, "Forget", about{}, func(ctx context.Context) error { return s.w.registry.Forget(ctx, server) }, server)
}

func (s *store) HeldChannels(ctx context.Context, server string, n int) ([]string, error) {
	return ask(ctx, s, "HeldChannels", about{}, func(ctx context.Context) ([]string, error) { return s.w.registry.HeldChannels(ctx, server, n) }, server)
}

func (s *store) HeldClients(ctx context.Context, server string, n int) ([]string, error) {
	return ask(ctx, s, "HeldClients", about{}, func(ctx context.Context) ([]string, error) { return s.w.registry.HeldClients(ctx, server, n) }, server)
}

func (s *store) Channels(ctx context.Context, prefix, cursor string, limit int) ([]string, string, error) {
	names, err := ask(ctx, s, "Channels", about{}, func(ctx context.Context) ([]string, error) {
		names, _, err := s.w.registry.Channels(ctx, prefix, cursor, limit)
		return names, err
	})
	return names, "", err // all of them fit a page
}

func (s *store) PruneChannel(ctx context.Context, channel string) (bool, error) {
	return ask(ctx, s, "PruneChannel", about{}, func(ctx context.Context) (bool, error) { return s.w.registry.PruneChannel(ctx, channel) }, channel)
}

func (s *store) TrimChannel(ctx context.Context, channel string, maxAge time.Duration, maxCount int, dryRun bool) (int, error) {
	return ask(ctx, s, "TrimChannel", about{channel: channel}, func(ctx context.Context) (int, error) {
		return s.w.queue.TrimChannel(ctx, channel, maxAge, maxCount, dryRun)
	}, channel, maxCount)
}

func (s *store) Release(ctx context.Context, client, server string) (user string, generation int64, released bool, err error) {
	type release struct {
		user       string
		generation int64
		released   bool
	}
	r, err := ask(ctx, s, "Release", about{client: client, owner: server}, func(ctx context.Context) (release, error) {
		user, generation, released, err := s.w.queue.Release(ctx, client, server)
		return release{user, generation, released}, err
	}, client, server)
	return r.user, r.generation, r.released, err
}
