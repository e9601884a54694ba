package delivery

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/broker/peer"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// memoryPusher is a Pusher over a store in memory. It records the hints to the server of all
// channels.
type memoryPusher struct {
	*Pusher
	queue *queue.Memory
	now   time.Time
	hints []peer.Hint
}

func newMemoryPusher() *memoryPusher {
	p := &memoryPusher{now: time.UnixMilli(1_800_000_000_000)}
	p.queue = queue.NewMemory(queue.Options{Now: func() time.Time { return p.now }}, func(string) []string { return []string{"other"} })
	p.Pusher = New(Options{
		Queue: p.queue, States: p.queue, Self: func() string { return "me" }, Live: func(string) bool { return true },
		Remote: func(_ string, h peer.Hint) { p.hints = append(p.hints, h) }, Stored: func(string, time.Duration) {},
	})
	return p
}

// takeHints returns the hints since the last call, as the kind, the id and the data.
func (p *memoryPusher) takeHints() (hints []string) {
	for _, h := range p.hints {
		hints = append(hints, fmt.Sprintf("%d %d after %d: %s", h.Kind, h.ID, h.Prev, h.Data))
	}
	p.hints = nil
	return hints
}

// hintTo returns a hint as takeHints does.
func hintTo(kind peer.Kind, id, prev int64, data string) string {
	return fmt.Sprintf("%d %d after %d: %s", kind, id, prev, data)
}

// setField returns a push that sets a field of channel a.
func setField(op state.Op) Push {
	op.Kind = state.Set
	return Push{Kind: Channel, Name: "a", Payload: Payload{Update: &state.Update{Ops: []state.Op{op}}}}
}

// TestScript checks that a push returns the reply of a script, and that there is no hint if the
// script changes no field.
func TestScript(t *testing.T) {
	p := newMemoryPusher()
	push := func(changes bool) (ChannelResult, error) {
		p.hints = nil
		return p.ToChannel(t.Context(), "a", Payload{
			Update: &state.Update{Ops: []state.Op{{Field: "best", Kind: state.Set, Value: []byte("1")}}},
			Script: &queue.ScriptCall{Memory: func(u *state.Update, _ int64) (string, func()) {
				if !changes {
					u.Ops = nil
				}
				return "seven", nil
			}},
		})
	}
	r, err := push(true)
	if err != nil || r.Reply != "seven" || r.ID == 0 || !r.New || len(p.hints) != 1 {
		t.Errorf("a change: %+v, %v, hints %v", r, err, p.hints)
	}
	r, err = push(false)
	if err != nil || r.Reply != "seven" || r.ID != 0 || r.New || len(p.hints) != 0 {
		t.Errorf("no change: %+v, %v, hints %v", r, err, p.hints)
	}
}

// TestUpdateHints checks the hints for updates, refused updates, duplicates and large entries.
func TestUpdateHints(t *testing.T) {
	p := newMemoryPusher()
	first, err := p.ToChannel(t.Context(), "a", Payload{Key: "k", Update: &state.Update{Ops: []state.Op{
		{Field: "x", Kind: state.Set, Value: []byte("1"), TTL: time.Second},
		{Field: "n", Kind: state.Add, By: 7, Max: 10},
	}, Data: []byte(`"data"`)}})
	if err != nil || !reflect.DeepEqual(first.Numbers, map[string]int64{"n": 7}) || first.Servers != 1 || !first.New {
		t.Fatalf("%+v, %v", first, err)
	}
	until := p.now.Add(time.Second).UnixMilli()
	entry := fmt.Sprintf(`~{"set":{"n":7,"x":1},"until":{"x":%d},"data":"data"}`, until)
	if got, want := p.takeHints(), []string{hintTo(peer.ChannelEntry, first.ID, 0, entry)}; !slices.Equal(got, want) {
		t.Errorf("update: hints %q, want %q", got, want)
	}

	again, err := p.ToChannel(t.Context(), "a", Payload{Key: "k", Update: &state.Update{}})
	if err != nil || !again.Duplicate || again.ID != first.ID || again.Numbers["n"] != 7 {
		t.Errorf("duplicate: %+v, %v", again, err)
	}
	if got, want := p.takeHints(), []string{hintTo(peer.Channel, first.ID, 0, "")}; !slices.Equal(got, want) {
		t.Errorf("duplicate: hints %q, want %q", got, want)
	}

	full := Payload{Update: &state.Update{Ops: []state.Op{{Field: "n", Kind: state.Add, By: 7, Max: 10}}}}
	for _, hints := range [][]string{nil, {`~{"gone":{"x":"expired"}}`}, nil} {
		refused, err := p.ToChannel(t.Context(), "a", full)
		if refusal, ok := errors.AsType[*wire.Error](err); !ok || refusal.Code != wire.OutOfRange || refused.ID != 0 {
			t.Fatalf("refused: %+v, %v", refused, err)
		}
		got := p.hints
		p.hints = nil
		if len(got) != len(hints) || len(got) > 0 && (string(got[0].Data) != hints[0] || got[0].Kind != peer.ChannelEntry || got[0].Prev != first.ID) {
			t.Errorf("refused: hints %+v, want %q", got, hints)
		}
		p.now = p.now.Add(2 * time.Second)
	}

	large := setField(state.Op{Field: "x", Value: []byte(`"` + strings.Repeat("v", maxInline) + `"`)})
	if p.PushBatch(t.Context(), []Push{large}); len(p.hints) != 1 || p.hints[0].Kind != peer.Channel || p.hints[0].Data != nil {
		t.Errorf("a large entry: %d hints, the first %+.100v", len(p.hints), p.hints)
	}
}

// TestRefusedUpdateInBatch checks that a refused update stops nothing else, and that the order of
// the pushes to a channel is kept.
func TestRefusedUpdateInBatch(t *testing.T) {
	p := newMemoryPusher()
	refused := setField(state.Op{Field: "y", Value: []byte("1")})
	refused.Update.If = []state.Condition{{Field: "absent", Kind: state.Exists}}
	pushes := []Push{
		setField(state.Op{Field: "x", Value: []byte("1")}), refused,
		{Kind: Channel, Name: "b", Payload: Payload{Data: []byte("1")}},
		setField(state.Op{Field: "x", Value: []byte("2")}), {Kind: Channel, Name: "a", Payload: Payload{Data: []byte("3")}},
	}
	p.PushBatch(t.Context(), pushes)
	for i, push := range pushes {
		if wrong := i == 1; (push.Err != nil) != wrong || (push.Channel.ID == 0) != wrong {
			t.Errorf("push %d: %+v, %v", i, push.Channel, push.Err)
		}
	}
	if refusal, ok := errors.AsType[*state.Refusal](pushes[1].Err); !ok || refusal.Field != "absent" {
		t.Errorf("the refusal is %v", pushes[1].Err)
	}
	page := p.queue.ReadStates(t.Context(), []queue.StateRead{{Channel: "a"}})[0].Value
	if len(page.Fields) != 1 || string(page.Fields[0].Value) != "2" {
		t.Errorf("the state is %+v", page.Fields)
	}
}

// TestRefusalIsNoFailure checks that a refused update is not taken for one that may have been
// stored.
func TestRefusalIsNoFailure(t *testing.T) {
	p := newMemoryPusher()
	p.ToChannel(t.Context(), "a", Payload{Update: &state.Update{If: []state.Condition{{Field: "x", Kind: state.Exists}}}})
	if uncertain := p.log.takeUncertain(); len(uncertain) > 0 {
		t.Errorf("%v may hold a message", uncertain)
	}
}

// failingStates fails the steps of channel bad, and finds the others stale.
type failingStates struct{}

func (failingStates) StepStates(_ context.Context, steps []queue.StateStep) (out []queue.Outcome[queue.Appended]) {
	for _, step := range steps {
		o := queue.Outcome[queue.Appended]{Err: fmt.Errorf("step: %w", queue.ErrStale), Value: queue.Appended{ID: 5, Data: []byte("~{}"), Servers: []string{"me"}}}
		if step.Channel == "bad" {
			o = queue.Outcome[queue.Appended]{Err: errors.New("no answer")}
		}
		out = append(out, o)
	}
	return out
}

// TestStepStates checks the hints of steps, also of one that fails after it removed expired fields.
func TestStepStates(t *testing.T) {
	p := newMemoryPusher()
	own := setField(state.Op{Field: "x", Value: []byte("1"), Own: state.Own})
	own.Update.Client, own.Update.Generation, own.Update.Server = "tab", 3, "me"
	p.PushBatch(t.Context(), []Push{own})
	p.takeHints()
	outcomes := p.StepStates(t.Context(), []queue.StateStep{
		{Channel: "a", Kind: queue.OwnerUnsubscribed, Conn: state.Connection{Client: "tab", Generation: 3, Server: "me"}},
		{Channel: "b", Kind: queue.Sweep},
	})
	if outcomes[0].Err != nil || outcomes[1].Value.ID != 0 {
		t.Errorf("%+v", outcomes)
	}
	if len(p.hints) != 1 || p.hints[0].Name != "a" || string(p.hints[0].Data) != `~{"gone":{"x":"left"}}` {
		t.Errorf("hints %+v", p.hints)
	}

	var local []peer.Hint
	p.opts.States, p.opts.Local = failingStates{}, func(h peer.Hint, _ state.Message) { local = append(local, h) }
	p.StepStates(t.Context(), []queue.StateStep{{Channel: "bad"}, {Channel: "stale"}})
	if len(local) != 1 || local[0].Name != "stale" || local[0].Kind != peer.ChannelEntry {
		t.Errorf("hints %+v", local)
	}
	if uncertain := slices.Collect(maps.Keys(p.log.takeUncertain())); !slices.Equal(uncertain, []queueKey{{peer.Channel, "bad"}}) {
		t.Errorf("%v may hold a message", uncertain)
	}
}
