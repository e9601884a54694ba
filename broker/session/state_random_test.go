package session_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"switchboard/broker/session"
	"switchboard/internal/longtest"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// TestRandomStates has devices connect, subscribe, own fields, stop reading and leave in a random
// order, while calls to the store fail. In the end every subscriber has the fields of the store,
// and a field is away if and only if none of its owners is subscribed.
func TestRandomStates(t *testing.T) {
	for seed := range longtest.Seeds(25, 100) {
		w := newRandomWorld(t, seed)
		for range 60 {
			w.step()
		}
		w.check()
		if t.Failed() {
			t.Fatalf("seed %d:\n%s", seed, strings.Join(w.log, "\n"))
		}
	}
}

type randomWorld struct {
	*harness
	rng     *rand.Rand
	devices []*randomDevice
	failing atomic.Bool // steps fail
	silent  atomic.Bool // publishes are stored, but the store does not answer
	log     []string
}

// randomDevice is a client that outlives its connections.
type randomDevice struct {
	*device  // nil if it is not connected
	name     string
	mode     string // of the subscription: "", "plain" or "state"
	prefix   string
	follower state.Follower
	position int64
	full     bool // it does not read
}

func newRandomWorld(t *testing.T, seed uint64) *randomWorld {
	w := &randomWorld{harness: newOwnHarness(t), rng: rand.New(rand.NewPCG(seed, 1))}
	step := w.harness.step
	w.harness.step = func(ctx context.Context, list []queue.StateStep) []queue.Outcome[queue.Appended] {
		if !w.failing.Load() {
			return step(ctx, list)
		}
		outcomes := make([]queue.Outcome[queue.Appended], len(list))
		if list[0].Channel == "a" && w.silent.Load() {
			outcomes = step(ctx, list) // executed, but without an answer
		}
		for i := range outcomes {
			outcomes[i].Err = errStore
		}
		return outcomes
	}
	w.afterPublish = func() error {
		if w.silent.Load() {
			return errStore
		}
		return nil
	}
	for i := range 4 {
		w.devices = append(w.devices, &randomDevice{name: fmt.Sprint("d", i)})
	}
	return w
}

// step does one random thing.
func (w *randomWorld) step() {
	d := w.devices[w.rng.IntN(len(w.devices))]
	field := fmt.Sprintf("%c/%d", 'p'+rune(w.rng.IntN(2)), w.rng.IntN(3))
	switch n := w.rng.IntN(20); {
	case n == 0:
		w.failing.Store(w.rng.IntN(2) == 0)
		w.silent.Store(w.rng.IntN(3) == 0)
		w.note("failing %v, silent %v", w.failing.Load(), w.silent.Load())
	case n == 1:
		w.note("tick")
		w.tick(1)
		w.hub.Tick()
		w.settle()
	case n == 2:
		w.note("trim")
		w.trim("a", 300)
	case d.device == nil:
		w.note("%s connects", d.name)
		d.device = w.connectDevice(d.name)
	case n < 5:
		w.note("%s leaves", d.name)
		d.end()
		d.device, d.mode, d.full = nil, "", false
	case n <= 10 && d.full: // its messages would wait, and so would the answers
	case n < 10:
		w.subscribe(d)
	case n == 10:
		w.note("%s unsubscribes", d.name)
		d.send(unsubscribeA)
		d.mode = ""
	case n == 11:
		w.note("%s stops reading", d.name)
		d.full = true
		d.setFull(true)
	case n == 12:
		d.full = w.rng.IntN(2) == 0
		w.note("%s reads, and stops again: %v", d.name, d.full)
		d.drain(d.full)
	case n < 17:
		w.note("%s owns %s", d.name, field)
		d.send(`{"type":"publish","channel":"a","set":{"%s":%d},"own":true}`, field, w.rng.IntN(100))
	case n == 17:
		w.note("%s removes %s", d.name, field)
		d.send(`{"type":"publish","channel":"a","del":["%s"]}`, field)
	default:
		w.note("%s sets %s", d.name, field)
		d.send(`{"type":"publish","channel":"a","set":{"%s":"%d"},"data":1}`, field, w.rng.IntN(100))
	}
	w.receiveAll()
}

func (w *randomWorld) note(format string, args ...any) {
	w.log = append(w.log, fmt.Sprintf(format, args...))
}

// subscribe subscribes a device, in a random way that the device may use.
func (w *randomWorld) subscribe(d *randomDevice) {
	mode, prefix := "state", []string{"", "p/", "q/"}[w.rng.IntN(3)]
	if w.rng.IntN(4) == 0 && d.mode == "" {
		mode = "plain"
	}
	after, held := "", ""
	if d.position > 0 && w.rng.IntN(2) == 0 {
		after = fmt.Sprintf(`,"after":%d`, d.position)
	}
	if mode == "state" && prefix == d.prefix && d.follower.Held() && (after != "" || d.mode == "state") {
		held = `,"held":true`
	}
	w.note("%s subscribes: %s %s%s%s", d.name, mode, prefix, after, held)
	if mode == "plain" {
		d.send(`{"type":"subscribe","channel":"a"%s}`, after)
	} else {
		if held == "" {
			d.follower = state.Follower{}
		}
		d.prefix = prefix
		d.send(`{"type":"subscribe","channel":"a","state":%q%s%s}`, prefix, after, held)
	}
	d.mode = mode
}

// receiveAll passes what was written to the devices.
func (w *randomWorld) receiveAll() {
	for _, d := range w.devices {
		if d.device == nil {
			continue
		}
		events := d.received()
		for _, e := range events {
			d.take(w, e)
		}
		follow(w.t, &d.follower, events)
		closed := wire.CloseReason("")
		w.onLoop(func() { closed = d.sock.closed })
		if closed != "" {
			w.note("%s is closed: %s", d.name, closed)
			d.device, d.mode, d.full = nil, "", false
			d.follower = state.Follower{}
		}
	}
}

func (d *randomDevice) take(w *randomWorld, e wire.Event) {
	if e.Type != wire.TypeMessage {
		w.note("  %s: %s %s", d.name, types([]wire.Event{e}), e.Message)
	}
	switch e.Type {
	case wire.TypeSubscribed:
		if e.Recovered == nil || !*e.Recovered {
			d.position = *e.ID
		}
	case wire.TypeMessage:
		d.position = *e.ID
		if d.mode == "plain" && e.StateEvent != nil && !reflect.DeepEqual(e.StateEvent, &wire.StateEvent{By: e.By}) {
			w.t.Errorf("%s sees changes without the state", d.name)
		}
	case wire.TypeGap:
		d.position = *e.ID
	case wire.TypeError:
		if e.Code == string(wire.Unavailable) && strings.Contains(e.Message, "store") && d.mode == "state" {
			d.mode = "unknown" // perhaps a subscribe was refused after the store knew that the client is back
		}
	}
}

// check repairs the store, has all devices read, and checks the fields.
func (w *randomWorld) check() {
	w.failing.Store(false)
	w.silent.Store(false)
	for range 5 {
		w.tick(1)
		w.hub.Tick()
		w.settle()
		for _, d := range w.devices {
			if d.device != nil {
				d.drain(false)
			}
		}
		w.receiveAll()
	}
	subscribed, unknown := map[string]bool{}, map[string]bool{}
	for _, d := range w.devices {
		if d.device == nil {
			continue
		}
		prefix, withState := session.StatePrefix(w.loop, d.receiver, "a")
		if subscribed[d.name] = withState; withState {
			w.checkFollower(d, prefix)
		}
		unknown[d.name] = d.mode == "unknown"
	}
	o := w.queue.ReadStates(w.t.Context(), []queue.StateRead{{Channel: "a"}})[0]
	for _, f := range o.Value.Fields {
		present := len(f.Owners) == 0 || slices.ContainsFunc(f.Owners, func(owner string) bool { return subscribed[owner] })
		isUnknown := slices.ContainsFunc(f.Owners, func(owner string) bool { return unknown[owner] })
		if present != (f.Away == 0) && !isUnknown {
			w.t.Errorf("field %s of %v: away is %d, and subscribed are %v", f.Name, f.Owners, f.Away, subscribed)
		}
	}
	for _, d := range w.devices {
		if d.device != nil {
			d.end()
		}
	}
	w.wantUnbound("a")
}

// checkFollower checks that a subscriber has the fields with its prefix.
func (w *randomWorld) checkFollower(d *randomDevice, prefix string) {
	fields := w.stored("a")
	for name := range fields {
		if !strings.HasPrefix(name, prefix) {
			delete(fields, name)
		}
	}
	if got, want := show(d.follower.Map().Fields), show(fields); got != want || !d.follower.Held() {
		w.t.Errorf("%s with the prefix %q has %s, the store %s; complete: %v", d.name, prefix, got, want, d.follower.Held())
	}
}
