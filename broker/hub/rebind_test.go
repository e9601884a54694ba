package hub

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"testing"

	"switchboard/queue"
	"switchboard/registry"
)

// countingRegistry records the calls that bind channels again, and can fail them.
type countingRegistry struct {
	*registry.Memory
	bound, held, listed []string
	doubted             []string         // those of bound that may have left the list of channels
	fail                map[string]error // by channel
}

func (r *countingRegistry) RebindChannels(ctx context.Context, server string, channels []string, list func(channel string) bool) (restored []string, errs []error) {
	r.bound = append(r.bound, channels...)
	restored, errs = r.Memory.RebindChannels(ctx, server, channels, list)
	for i, channel := range channels {
		if list(channel) {
			r.doubted = append(r.doubted, channel)
		}
		errs[i] = cmp.Or(errs[i], r.fail[channel])
	}
	return restored, errs
}

func (r *countingRegistry) HoldChannels(ctx context.Context, server string, channels []string) error {
	r.held = append(r.held, channels...)
	return r.Memory.HoldChannels(ctx, server, channels)
}

func (r *countingRegistry) ListChannels(ctx context.Context, server string, channels []string) error {
	r.listed = append(r.listed, channels...)
	return r.Memory.ListChannels(ctx, server, channels)
}

// TestRebind checks that channels whose bindings are lost are bound and read again, and no others.
func TestRebind(t *testing.T) {
	s := newHarness(t, queue.Options{})
	reg := &countingRegistry{Memory: s.reg}
	s.opts.Registry = reg
	a, _, _ := s.subscribe("a", nil)
	b, _, _ := s.subscribe("b", nil)
	held := s.Held()
	if want := []HeldChannel{{"a", true}, {"b", true}}; !slices.Equal(held, want) {
		t.Errorf("held %v, want %v", held, want)
	}
	s.began = s.began.Add(-2 * recentTime)
	if held := s.Held(); held[0].Recent {
		t.Error("a channel that was bound two minutes ago is recent")
	}
	var lost [2][]queue.Appended
	for i, name := range []string{"a", "b"} {
		if err := s.reg.UnbindChannel(t.Context(), "me", name); err != nil {
			t.Fatal(err)
		}
		lost[i] = s.append(name, 1) // without a hint
	}
	unlock := s.Channel("a").lockBinding()
	rebound := make(chan struct{})
	go func() {
		defer close(rebound)
		if restored, failed, err := s.Rebind(t.Context(), []string{"a", "unknown"}, ""); err != nil || failed != nil || !slices.Equal(restored, []string{"a"}) {
			t.Errorf("restored %v, failed %v, %v", restored, failed, err)
		}
	}()
	unlock()
	<-rebound
	s.settle()
	s.expect(a, lost[0], "of the channel that was bound again")
	s.expect(b, nil, "of the other channel")
	if servers, _ := s.reg.ChannelServers(t.Context(), "a"); !slices.Equal(servers, []string{"me"}) || !slices.Equal(reg.bound, []string{"a"}) {
		t.Errorf("bound on %v, by calls for %v", servers, reg.bound)
	}
	if err := s.ListAgain(t.Context(), []string{"b", "unknown"}); err != nil || !slices.Equal(reg.listed, []string{"b"}) || reg.held != nil {
		t.Errorf("listed %v, held %v, %v", reg.listed, reg.held, err)
	}
	if err := s.HoldAgain(t.Context(), []string{"a", "unknown"}); err != nil || !slices.Equal(reg.held, []string{"a"}) || len(reg.listed) > 1 {
		t.Errorf("held %v, listed %v, %v", reg.held, reg.listed, err)
	}
	unavailable := errors.New("unavailable")
	reg.fail = map[string]error{"a": unavailable, "b": unavailable}
	if _, failed, err := s.Rebind(t.Context(), []string{"a", "b"}, ""); !errors.Is(err, unavailable) || !slices.Equal(failed, []string{"a", "b"}) {
		t.Errorf("failed %v, %v", failed, err)
	}
	reg.fail = nil
	if restored, _, err := s.Rebind(t.Context(), []string{"b"}, ""); err != nil || !slices.Equal(restored, []string{"b"}) {
		t.Errorf("restored %v, %v; the call that failed may have restored b", restored, err)
	}
	if restored, _, err := s.Rebind(t.Context(), []string{"a", "b"}, ""); err != nil || !slices.Equal(restored, []string{"a"}) {
		t.Errorf("restored %v, %v; want a, which has not been bound since the failure", restored, err)
	}
}

// TestRebindListsWhatIsInDoubt checks that after the call for one channel has failed, only this
// channel is added to the list of channels again. A server that was declared dead adds all.
func TestRebindListsWhatIsInDoubt(t *testing.T) {
	s := newHarness(t, queue.Options{})
	reg := &countingRegistry{Memory: s.reg}
	s.opts.Registry = reg
	names := []string{"a", "b", "c"}
	for _, name := range names {
		s.subscribe(name, nil)
	}
	rebind := func(what, old string, failed, doubted []string) {
		t.Helper()
		reg.doubted = nil
		if _, got, _ := s.Rebind(t.Context(), names, old); !slices.Equal(got, failed) || !slices.Equal(reg.doubted, doubted) {
			t.Errorf("%s: failed %v, in doubt %v; want %v and %v", what, got, reg.doubted, failed, doubted)
		}
	}
	rebind("without a failure", "", nil, nil)
	reg.fail = map[string]error{"b": errors.New("unavailable")}
	rebind("one fails", "", []string{"b"}, nil)
	reg.fail = nil
	rebind("after the failure", "", nil, []string{"b"})
	rebind("after all is bound", "", nil, nil)
	rebind("under a new id", "former", nil, names)
}

// TestUncertainUnbind checks that an unbind without an answer is reported: the store may execute it
// after the next bind.
func TestUncertainUnbind(t *testing.T) {
	s := newHarness(t, queue.Options{})
	s.opts.Registry = lateUnbind{s.reg}
	var uncertain []string
	s.opts.Uncertain = func(channel string) { uncertain = append(uncertain, channel) }
	_, sub, _ := s.subscribe("a", nil)
	s.do(func() { s.Unsubscribe(sub) })
	s.Tick()
	s.settle()
	if !slices.Equal(uncertain, []string{"a"}) {
		t.Errorf("%v are uncertain", uncertain)
	}
}

type lateUnbind struct{ *registry.Memory }

func (lateUnbind) UnbindChannel(context.Context, string, string) error {
	return context.DeadlineExceeded
}
