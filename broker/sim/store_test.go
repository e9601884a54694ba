package sim

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"switchboard/internal/slots"
	"switchboard/queue"
	"switchboard/registry"
)

// store is the registry and the queue that one process calls: every call parks.
type store struct {
	w    *world
	node *node // nil for the janitor
	name string
}

// callStore parks a call that returns a value.
func callStore[T any](ctx context.Context, s *store, op string, about subject, do func(context.Context) (T, error), args ...any) (T, error) {
	c := &call{node: s.node, caller: s.name, op: op, subject: about, args: strings.TrimSuffix(fmt.Sprintln(args...), "\n")}
	c.do = func() (any, error) { return do(context.Background()) }
	value, err := s.w.park(ctx, c)
	answer, _ := value.(T) // a refused update has an answer too
	return answer, err
}

// callStoreErr parks a call that returns only an error.
func callStoreErr(ctx context.Context, s *store, op string, about subject, do func(context.Context) error, args ...any) error {
	_, err := callStore(ctx, s, op, about, func(ctx context.Context) (struct{}, error) { return struct{}{}, do(ctx) }, args...)
	return err
}

// valueOK is the answer of calls that return a value and a flag.
type valueOK[T any] struct {
	value T
	ok    bool
}

func (s *store) Renew(ctx context.Context, r registry.Server, since int64) (registry.Changes, error) {
	return callStore(ctx, s, "Renew", subject{server: r.ID}, func(ctx context.Context) (registry.Changes, error) { return s.w.registry.Renew(ctx, r, since) }, r.ID)
}

func (s *store) Servers(ctx context.Context) ([]registry.Server, error) {
	return callStore(ctx, s, "Servers", subject{}, s.w.registry.Servers)
}

func (s *store) BindChannel(ctx context.Context, server, channel string) error {
	return callStoreErr(ctx, s, "BindChannel", subject{channel: channel, server: server}, func(ctx context.Context) error {
		return s.w.registry.BindChannel(ctx, server, channel)
	}, server, channel)
}

func (s *store) BindChannels(ctx context.Context, server string, channels []string) []error {
	return errorsOf(concurrently(ctx, channels, func(ctx context.Context, channel string) (struct{}, error) {
		return struct{}{}, s.BindChannel(ctx, server, channel)
	}))
}

func (s *store) RebindChannels(ctx context.Context, server string, channels []string, list func(channel string) bool) (restored []string, errs []error) {
	added := concurrently(ctx, channels, func(ctx context.Context, channel string) (restored bool, err error) {
		return callStore(ctx, s, "BindChannel", subject{channel: channel, server: server}, func(ctx context.Context) (bool, error) {
			restored, errs := s.w.registry.RebindChannels(ctx, server, []string{channel}, list)
			return len(restored) > 0, errs[0]
		}, server, channel)
	})
	for i, o := range added {
		if o.Value {
			restored = append(restored, channels[i])
		}
	}
	return restored, errorsOf(added)
}

func (s *store) UnbindChannel(ctx context.Context, server, channel string) error {
	return callStoreErr(ctx, s, "UnbindChannel", subject{channel: channel}, func(ctx context.Context) error {
		return s.w.registry.UnbindChannel(ctx, server, channel)
	}, server, channel)
}

func (s *store) ChannelServers(ctx context.Context, channel string) ([]string, error) {
	return callStore(ctx, s, "ChannelServers", subject{}, func(ctx context.Context) ([]string, error) {
		return s.w.registry.ChannelServers(ctx, channel)
	}, channel)
}

func (s *store) holdClient(ctx context.Context, server, client string) error {
	return callStoreErr(ctx, s, "HoldClient", subject{client: client, server: server}, func(ctx context.Context) error {
		return s.w.registry.HoldClients(ctx, server, []string{client})
	}, server, client)
}

func (s *store) HoldClients(ctx context.Context, server string, clients []string) error {
	return errors.Join(errorsOf(concurrently(ctx, clients, func(ctx context.Context, client string) (struct{}, error) {
		return struct{}{}, s.holdClient(ctx, server, client)
	}))...)
}

func (s *store) HoldChannels(ctx context.Context, server string, channels []string) error {
	return errors.Join(errorsOf(concurrently(ctx, channels, func(ctx context.Context, channel string) (struct{}, error) {
		return struct{}{}, callStoreErr(ctx, s, "HoldChannel", subject{channel: channel, server: server}, func(ctx context.Context) error {
			return s.w.registry.HoldChannels(ctx, server, []string{channel})
		}, server, channel)
	}))...)
}

func (s *store) ListChannels(ctx context.Context, server string, channels []string) error {
	return s.HoldChannels(ctx, server, channels)
}

func (s *store) ListedIn(channel string, of *slots.Set) bool {
	return s.w.registry.ListedIn(channel, of)
}

func (s *store) KeepChannelList(keep bool) { s.w.registry.KeepChannelList(keep) }

func (s *store) MoveChannelList(ctx context.Context) (int, error) {
	return s.w.registry.MoveChannelList(ctx)
}

func (s *store) DropClient(ctx context.Context, server, client string) error {
	return callStoreErr(ctx, s, "DropClient", subject{client: client}, func(ctx context.Context) error {
		return s.w.registry.DropClient(ctx, server, client)
	}, server, client)
}

// bindUser returns the servers that watch the user.
func (s *store) bindUser(ctx context.Context, b registry.UserBinding) ([]string, error) {
	return callStore(ctx, s, "BindUser", subject{user: b.User, client: b.Client, generation: b.Generation}, func(ctx context.Context) ([]string, error) {
		list := []registry.UserBinding{b}
		err := s.w.registry.BindUsers(ctx, list)[0]
		return list[0].Watchers, err
	}, b.User, b.Client, b.Server, b.Generation)
}

func (s *store) Subscribe(context.Context, registry.SubscriptionChange) (registry.SubscriptionsChanged, error) {
	panic("sim: the backend subscribes no clients")
}

func (s *store) Subscriptions(ctx context.Context, list []registry.Subscriber) []registry.SubscriptionsOutcome {
	return s.w.registry.Subscriptions(ctx, list)
}

func (s *store) BindUsers(ctx context.Context, list []registry.UserBinding) []error {
	errs := make([]error, len(list))
	for i, o := range concurrently(ctx, list, s.bindUser) {
		list[i].Watchers, errs[i] = o.Value, o.Err
	}
	return errs
}

func (s *store) UsersHave(ctx context.Context, list []registry.UserBinding) ([]bool, error) {
	return callStore(ctx, s, "UsersHave", subject{}, func(ctx context.Context) ([]bool, error) {
		return s.w.registry.UsersHave(ctx, list)
	}, list)
}

func (s *store) CheckTokens(ctx context.Context, list []registry.UserBinding) []error {
	return s.w.registry.CheckTokens(ctx, list)
}

func (s *store) ReleaseUser(ctx context.Context, user, client string, generation int64) ([]string, error) {
	return callStore(ctx, s, "ReleaseUser", subject{user: user, client: client, generation: generation}, func(ctx context.Context) ([]string, error) {
		return s.w.registry.ReleaseUser(ctx, user, client, generation)
	}, user, client, generation)
}

func (s *store) ForgetUser(ctx context.Context, user, client string, generation int64) error {
	return callStoreErr(ctx, s, "ForgetUser", subject{user: user, client: client, generation: generation}, func(ctx context.Context) error {
		return s.w.registry.ForgetUser(ctx, user, client, generation)
	}, user, client, generation)
}

func (s *store) User(ctx context.Context, user string) ([]registry.Binding, error) {
	return callStore(ctx, s, "User", subject{user: user}, func(ctx context.Context) ([]registry.Binding, error) { return s.w.registry.User(ctx, user) }, user)
}

func (s *store) bind(ctx context.Context, c queue.Claim) (queue.Bound, error) {
	if c.Asked == 0 { // as the store in Redis does
		c.Asked = s.w.storeTime().Add(-s.w.clockLag).UnixMilli()
	}
	return callStore(ctx, s, "Bind", subject{client: c.Client, owner: c.Server}, func(ctx context.Context) (queue.Bound, error) {
		o := s.w.queue.BindClients(ctx, []queue.Claim{c})[0]
		return o.Value, o.Err
	}, c.Client, c.User, c.Server)
}

func (s *store) BindClients(ctx context.Context, claims []queue.Claim) []queue.Outcome[queue.Bound] {
	return concurrently(ctx, claims, s.bind)
}

func (s *store) refresh(ctx context.Context, server string, h queue.HeldClient) error {
	return callStoreErr(ctx, s, "Refresh", subject{client: h.Client, owner: server, generation: h.Generation}, func(ctx context.Context) error {
		return s.w.queue.RefreshClients(ctx, server, []queue.HeldClient{h})[0]
	}, h.Client, h.User, server, h.Generation)
}

func (s *store) RefreshClients(ctx context.Context, server string, list []queue.HeldClient) []error {
	return errorsOf(concurrently(ctx, list, func(ctx context.Context, h queue.HeldClient) (struct{}, error) {
		return struct{}{}, s.refresh(ctx, server, h)
	}))
}

func (s *store) Unbind(ctx context.Context, client string, generation int64) error {
	return callStoreErr(ctx, s, "Unbind", subject{client: client, generation: generation}, func(ctx context.Context) error {
		return s.w.queue.Unbind(ctx, client, generation)
	}, client, generation)
}

func (s *store) Client(ctx context.Context, client string) (queue.Client, bool, error) {
	f, err := callStore(ctx, s, "Client", subject{client: client}, func(ctx context.Context) (valueOK[queue.Client], error) {
		c, known, err := s.w.queue.Client(ctx, client)
		return valueOK[queue.Client]{c, known}, err
	}, client)
	return f.value, f.ok, err
}

func (s *store) Window(ctx context.Context, client string, generation, after int64, limit int) (queue.Page, error) {
	return callStore(ctx, s, "Window", subject{client: client, generation: generation}, func(ctx context.Context) (queue.Page, error) {
		return s.w.queue.Window(ctx, client, generation, after, limit)
	}, client, generation, after)
}

func (s *store) Ack(ctx context.Context, client string, generation, id int64) (int, error) {
	return callStore(ctx, s, "Ack", subject{client: client, generation: generation}, func(ctx context.Context) (int, error) {
		return s.w.queue.Ack(ctx, client, generation, id)
	}, client, generation, id)
}

func (s *store) Acks(ctx context.Context, acks []queue.Ack) []queue.Outcome[int] {
	return concurrently(ctx, acks, func(ctx context.Context, a queue.Ack) (int, error) { return s.Ack(ctx, a.Client, a.Generation, a.ID) })
}

func (s *store) ReadChannel(ctx context.Context, channel string, after int64, limit int) (queue.Page, error) {
	return callStore(ctx, s, "ReadChannel", subject{channel: channel}, func(ctx context.Context) (queue.Page, error) {
		return s.w.queue.ReadChannel(ctx, channel, after, limit)
	}, channel, after, limit)
}

func (s *store) ReadChannels(ctx context.Context, reads []queue.ChannelRead) []queue.Outcome[queue.Page] {
	return concurrently(ctx, reads, func(ctx context.Context, c queue.ChannelRead) (queue.Page, error) {
		return s.ReadChannel(ctx, c.Channel, c.After, c.Limit)
	})
}

func (s *store) channelHead(ctx context.Context, known queue.ChannelKnown) (queue.ChannelHead, error) {
	return callStore(ctx, s, "ChannelHead", subject{channel: known.Channel}, func(ctx context.Context) (queue.ChannelHead, error) {
		o := s.w.queue.ChannelHeads(ctx, []queue.ChannelKnown{known})[0]
		return o.Value, o.Err
	}, known.Channel, known.ID)
}

func (s *store) ChannelHeads(ctx context.Context, known []queue.ChannelKnown) []queue.Outcome[queue.ChannelHead] {
	return concurrently(ctx, known, s.channelHead)
}

func (s *store) clientHead(ctx context.Context, known queue.ClientKnown) (queue.ClientHead, error) {
	return callStore(ctx, s, "ClientHead", subject{client: known.Client}, func(ctx context.Context) (queue.ClientHead, error) {
		o := s.w.queue.ClientHeads(ctx, []queue.ClientKnown{known})[0]
		return o.Value, o.Err
	}, known.Client)
}

func (s *store) ClientHeads(ctx context.Context, known []queue.ClientKnown) []queue.Outcome[queue.ClientHead] {
	return concurrently(ctx, known, s.clientHead)
}

func (s *store) KeepPositions(context.Context, []string) error {
	panic("sim: positions do not expire")
}

func (s *store) PushRequest(context.Context, queue.Request) error {
	panic("sim: clients send no requests")
}

func (s *store) AppendChannel(ctx context.Context, push queue.ChannelPush) (queue.Appended, error) {
	op := "AppendChannel"
	if push.Update != nil {
		op = "UpdateChannel"
	}
	return callStore(ctx, s, op, subject{channel: push.Channel}, func(ctx context.Context) (queue.Appended, error) {
		return s.w.queue.AppendChannel(ctx, push)
	}, push.Channel, string(push.Data), describeUpdate(push.Update))
}

func (s *store) EraseMessage(ctx context.Context, e queue.Erase) (queue.Erased, error) {
	return callStore(ctx, s, "EraseMessage", subject{channel: e.Channel}, func(ctx context.Context) (queue.Erased, error) {
		return s.w.queue.EraseMessage(ctx, e)
	}, e.Channel, fmt.Sprint(e.ID))
}

func (s *store) AppendClient(ctx context.Context, push queue.ClientPush) (queue.ClientAppended, error) {
	return callStore(ctx, s, "AppendClient", subject{client: push.Client}, func(ctx context.Context) (queue.ClientAppended, error) {
		return s.w.queue.AppendClient(ctx, push)
	}, push.Client, string(push.Data))
}

func (s *store) AppendChannels(ctx context.Context, pushes []queue.ChannelPush) []queue.Outcome[queue.Appended] {
	return concurrently(ctx, pushes, s.AppendChannel)
}

func (s *store) AppendClients(ctx context.Context, pushes []queue.ClientPush) []queue.Outcome[queue.ClientAppended] {
	return concurrently(ctx, pushes, s.AppendClient)
}

// concurrently parks each call of a batch by itself, because each may fail alone and in any order.
func concurrently[P, T any](ctx context.Context, items []P, do func(context.Context, P) (T, error)) []queue.Outcome[T] {
	out := make([]queue.Outcome[T], len(items))
	var calls sync.WaitGroup
	for i, item := range items {
		calls.Go(func() { out[i].Value, out[i].Err = do(ctx, item) })
	}
	calls.Wait()
	return out
}

func errorsOf[T any](outcomes []queue.Outcome[T]) []error {
	errs := make([]error, len(outcomes))
	for i, o := range outcomes {
		errs[i] = o.Err
	}
	return errs
}

func (s *store) ConfirmChannel(ctx context.Context, channel string, id int64) (*queue.Marker, error) {
	return callStore(ctx, s, "ConfirmChannel", subject{channel: channel}, func(ctx context.Context) (*queue.Marker, error) {
		return s.w.queue.ConfirmChannel(ctx, channel, id)
	}, channel, id)
}

func (s *store) ConfirmClient(ctx context.Context, client string, id int64) (*queue.Marker, error) {
	return callStore(ctx, s, "ConfirmClient", subject{client: client}, func(ctx context.Context) (*queue.Marker, error) {
		return s.w.queue.ConfirmClient(ctx, client, id)
	}, client, id)
}

// The methods below are only for the janitor.

func (s *store) Listed(ctx context.Context) ([]string, error) {
	return callStore(ctx, s, "Listed", subject{}, s.w.registry.Listed)
}

func (s *store) Lease(ctx context.Context, server string) (registry.Server, bool, error) {
	f, err := callStore(ctx, s, "Lease", subject{}, func(ctx context.Context) (valueOK[registry.Server], error) {
		r, live, err := s.w.registry.Lease(ctx, server)
		return valueOK[registry.Server]{r, live}, err
	}, server)
	return f.value, f.ok, err
}

func (s *store) DeclareDead(ctx context.Context, server string) (bool, error) {
	return callStore(ctx, s, "DeclareDead", subject{server: server}, func(ctx context.Context) (bool, error) { return s.w.registry.DeclareDead(ctx, server) }, server)
}

func (s *store) DeclaredDead(ctx context.Context, server string) (bool, error) {
	return callStore(ctx, s, "DeclaredDead", subject{}, func(ctx context.Context) (bool, error) { return s.w.registry.DeclaredDead(ctx, server) }, server)
}

func (s *store) Forget(ctx context.Context, server string) error {
	return callStoreErr(ctx, s, "Forget", subject{}, func(ctx context.Context) error { return s.w.registry.Forget(ctx, server) }, server)
}

func (s *store) NotifyStates(ctx context.Context, servers []string) error {
	return callStoreErr(ctx, s, "NotifyStates", subject{}, func(ctx context.Context) error { return s.w.registry.NotifyStates(ctx, servers) }, servers)
}

func (s *store) HeldChannels(ctx context.Context, server string, n int) ([]string, error) {
	return callStore(ctx, s, "HeldChannels", subject{}, func(ctx context.Context) ([]string, error) { return s.w.registry.HeldChannels(ctx, server, n) }, server)
}

func (s *store) HeldClients(ctx context.Context, server string, n int) ([]string, error) {
	return callStore(ctx, s, "HeldClients", subject{}, func(ctx context.Context) ([]string, error) { return s.w.registry.HeldClients(ctx, server, n) }, server)
}

func (s *store) Channels(ctx context.Context, prefix, cursor string, limit int) ([]string, string, error) {
	names, err := callStore(ctx, s, "Channels", subject{}, func(ctx context.Context) ([]string, error) {
		names, _, err := s.w.registry.Channels(ctx, prefix, cursor, limit)
		return names, err
	})
	return names, "", err // all names fit in one page
}

func (s *store) PruneChannel(ctx context.Context, channel string) (bool, error) {
	return callStore(ctx, s, "PruneChannel", subject{}, func(ctx context.Context) (bool, error) { return s.w.registry.PruneChannel(ctx, channel) }, channel)
}

func (s *store) TrimChannel(ctx context.Context, channel string, maxAge time.Duration, maxCount int, dryRun bool) (int, error) {
	return callStore(ctx, s, "TrimChannel", subject{channel: channel}, func(ctx context.Context) (int, error) {
		return s.w.queue.TrimChannel(ctx, channel, maxAge, maxCount, dryRun)
	}, channel, maxCount)
}

func (s *store) Release(ctx context.Context, client, server string) (user string, generation int64, released bool, err error) {
	type release struct {
		user       string
		generation int64
		released   bool
	}
	r, err := callStore(ctx, s, "Release", subject{client: client, owner: server}, func(ctx context.Context) (release, error) {
		user, generation, released, err := s.w.queue.Release(ctx, client, server)
		return release{user, generation, released}, err
	}, client, server)
	return r.user, r.generation, r.released, err
}
