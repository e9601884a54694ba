package hub

import (
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
	fail                error
}

func (r *countingRegistry) RebindChannels(ctx context.Context, server string, channels []string, list bool) (restored []string, errs []error) {
	r.bound = append(r.bound, channels...)
	if r.fail != nil {
		return nil, slices.Repeat([]error{r.fail}, len(channels))
	}
	return r.Memory.RebindChannels(ctx, server, channels, list)
}

func (r *countingRegistry) HoldChannels(ctx context.Context, server string, channels []string) error {
	r.held = append(r.held, channels...)
	return errors.Join(r.fail, r.Memory.HoldChannels(ctx, server, channels))
}

func (r *countingRegistry) ListChannels(ctx context.Context, server string, channels []string) error {
	r.listed = append(r.listed, channels...)
	return errors.Join(r.fail, r.Memory.ListChannels(ctx, server, channels))
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
	reg.fail = errors.New("unavailable")
	if _, failed, err := s.Rebind(t.Context(), []string{"a", "b"}, ""); !errors.Is(err, reg.fail) || !slices.Equal(failed, []string{"a", "b"}) {
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
