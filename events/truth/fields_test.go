package truth

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"switchboard/events"
	"switchboard/events/recording"
	"switchboard/internal/state"
	"switchboard/queue"
)

// set returns an operation that sets a field with a lease.
func set(field string, lease time.Duration) state.Op {
	return state.Op{Field: field, Kind: state.Set, Value: []byte("1"), TTL: lease}
}

// update changes the state of a channel.
func (s *stores) update(channel string, keep time.Duration, ops ...state.Op) queue.Appended {
	s.Helper()
	u := &state.Update{Ops: ops, Writer: state.BackendHolder, Client: "phone", Generation: 1, Server: "a", Limits: state.Limits{Keep: keep}}
	a, err := s.queue.AppendChannel(s.Context(), queue.ChannelPush{Channel: channel, Update: u})
	ok(s.T, err)
	return a
}

func TestEndFields(t *testing.T) {
	eachStore(t, func(s *stores) {
		truth := New(s, s.queue)
		s.update("room", 0, set("a", time.Millisecond), set("b", time.Millisecond), set("stays", 0), set("later", time.Hour))
		kept := s.update("kept", time.Millisecond, set("a", 0))
		s.update("left", 0, state.Op{Field: "a", Kind: state.Set, Value: []byte("1"), Own: state.Own})
		s.queue.StepStates(s.Context(), []queue.StateStep{{
			Channel: "left", Kind: queue.OwnerEnded, Conn: state.Connection{Client: "phone", Generation: 1, Server: "a"},
		}})
		s.pass()
		positions := []events.FieldsPosition{{Channel: "room"}, {Channel: "kept", After: kept.ID}, {Channel: "left"}, {Channel: "new"}}
		ended := truth.EndFields(s.Context(), positions)
		for i, want := range []string{
			"false map[a:expired b:expired], fields true", "true map[], fields false", "false map[a:left], fields false", ", fields false",
		} {
			e, got := ended[i], ""
			for _, m := range e.Messages {
				got += fmt.Sprint(m.Cleared, " ", m.Gone)
				if m.ID <= positions[i].After || m.ID > e.Upto {
					s.Errorf("%s: message %d after %d, up to %d", positions[i].Channel, m.ID, positions[i].After, e.Upto)
				}
			}
			if got += fmt.Sprint(", fields ", !e.Empty); got != want || e.Err != nil || e.More || e.Upto != e.Last {
				s.Errorf("%s: %s, want %s; %+v", positions[i].Channel, got, want, e)
			}
			if (e.Due > 0) != (i == 0) {
				s.Errorf("%s: due at %d", positions[i].Channel, e.Due)
			}
		}
		positions[0].After = ended[0].Upto
		if again := truth.EndFields(s.Context(), positions[:1])[0]; len(again.Messages) > 0 || again.Upto != ended[0].Upto || again.Empty {
			s.Errorf("after the last position: %+v", again)
		}
	})
}

// TestEndFieldsInLongLog reads a log of many pages, in which many fields have ended.
func TestEndFieldsInLongLog(t *testing.T) {
	eachStore(t, func(s *stores) {
		const n = 1300
		pushes := make([]queue.ChannelPush, 0, 2*n)
		for i := range n {
			field := fmt.Sprint("f/", i)
			own := state.Op{Field: field, Kind: state.Set, Value: []byte("1"), Own: state.Own}
			pushes = append(pushes, queue.ChannelPush{Channel: "room", Update: &state.Update{Ops: []state.Op{own}, Client: field, Generation: 1, Server: "a"}})
		}
		for _, o := range s.queue.AppendChannels(s.Context(), pushes) {
			ok(s.T, o.Err)
		}
		for i := range n {
			step := queue.StateStep{Channel: "room", Kind: queue.OwnerUnsubscribed, Conn: state.Connection{Client: fmt.Sprint("f/", i), Generation: 1, Server: "a"}}
			ok(s.T, s.queue.StepStates(s.Context(), []queue.StateStep{step})[0].Err)
		}
		position, seen := events.FieldsPosition{Channel: "room"}, 0
		for calls := 0; ; calls++ {
			e := New(s, s.queue).EndFields(s.Context(), []events.FieldsPosition{position})[0]
			ok(s.T, e.Err)
			for _, m := range e.Messages {
				if field := fmt.Sprint("f/", seen); m.Gone[field] != state.Left {
					s.Fatalf("message %d is %+v, want the end of %s", seen, m, field)
				}
				seen++
			}
			position.After = e.Upto
			if !e.More {
				break
			}
			if len(e.Messages) > logPage+maxMessages || calls > 50 {
				s.Fatalf("%d messages in call %d", len(e.Messages), calls)
			}
		}
		if seen != n {
			s.Errorf("%d messages, want %d", seen, n)
		}
	})
}

// TestMessagesBeforePosition reads a page of a log that has lost the message at the position, so
// that the page begins before it.
func TestMessagesBeforePosition(t *testing.T) {
	gone := []byte(`~{"gone":{"a":"expired"}}`)
	page := queue.Page{Last: 9, More: true, Messages: []queue.Message{{ID: 5, Data: gone}, {ID: 9, Data: gone}}}
	for _, c := range []struct{ after, position int64 }{{7, 9}, {9, 9}, {12, 12}} {
		var ended events.EndedFields
		position, names := addMessages(&ended, page, c.after, 0)
		if n := len(ended.Messages); position != c.position || ended.Upto != position || n != names || (n == 1) != (c.after < 9) || ended.More != (n > 0) {
			t.Errorf("after %d: position %d, %+v", c.after, position, ended)
		}
	}
}

// pass waits until more than a millisecond has passed on the store's clock.
func (s *stores) pass() {
	clock := func() int64 {
		return s.queue.ReadStates(s.Context(), []queue.StateRead{{Channel: "clock"}})[0].Value.Clock
	}
	for start := clock(); clock() <= start+1; {
	}
}

// errKilled is the error of a call in which the process is killed.
var errKilled = errors.New("the process is killed")

// mortal is an event store whose callers are killed before or after some of their calls.
type mortal struct {
	events.Store
	alive func() bool // decides about one call
}

func (m mortal) SettleFields(ctx context.Context, shard int, r events.FieldsResult) (events.Settled, error) {
	if !m.alive() {
		return events.Settled{}, errKilled
	}
	settled, err := m.Store.SettleFields(ctx, shard, r)
	if !m.alive() {
		return events.Settled{}, errKilled
	}
	return settled, err
}

func (m mortal) ScheduleFields(ctx context.Context, track bool, checks ...events.FieldsCheck) []error {
	if track || m.alive() {
		return m.Store.ScheduleFields(ctx, track, checks...)
	}
	return slices.Repeat([]error{errKilled}, len(checks))
}

// collector is a Sender that keeps the events of each channel, in order and each once.
type collector struct {
	t        *testing.T
	mu       sync.Mutex // guards the fields below
	ids      map[string]string
	channels map[string][]string
}

func (*collector) Timeout() time.Duration { return time.Second }

func (c *collector) Send(_ context.Context, all [][]byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, text := range all {
		var e struct {
			ID, Type, Channel string
			Message           int64
			Cleared           bool
			Gone              map[string]string
		}
		if err := json.Unmarshal(text, &e); err != nil || e.Type != "fields_gone" {
			c.t.Errorf("%s: %v", text, err)
		}
		line := fmt.Sprint(e.Message, e.Cleared, e.Gone)
		if c.ids[e.ID] != "" {
			c.t.Errorf("%s is sent twice", text)
		}
		c.ids[e.ID] = line
		c.channels[e.Channel] = append(c.channels[e.Channel], line)
	}
	return nil
}

// TestFieldsGoneAlthoughProcessesAreKilled changes the states of channels, concurrently with
// several dispatchers, whose processes are killed again and again: after a claim, after an event
// was stored, and after an update whose end was not recorded. Each entry of the logs with fields
// that have ended must make one event, in order, although no server has subscribers.
func TestFieldsGoneAlthoughProcessesAreKilled(t *testing.T) {
	t.Run("events in memory", func(t *testing.T) {
		eachStore(t, func(s *stores) { s.runFieldsGone(events.NewMemory(events.StoreOptions{})) })
	})
	eachStore(t, func(s *stores) {
		if s.events != nil {
			s.runFieldsGone(s.events)
		}
	})
}

func (s *stores) runFieldsGone(store events.Store) {
	var killing sync.Mutex // guards rate and random
	rate, random := 0.3, rand.New(rand.NewPCG(7, 7))
	alive := func() bool {
		killing.Lock()
		defer killing.Unlock()
		return random.Float64() >= rate
	}
	sender := &collector{t: s.T, ids: map[string]string{}, channels: map[string][]string{}}
	dispatcher := func() *events.Dispatcher {
		d, err := events.NewDispatcher(events.Options{Store: mortal{store, alive}, Truth: New(s, s.queue), Sender: sender})
		ok(s.T, err)
		return d
	}
	round := func(d *events.Dispatcher) {
		for _, do := range []func(context.Context) (events.Report, error){d.SweepRound, d.DueRound, d.SendRound} {
			if _, err := do(s.Context()); err != nil && !errors.Is(err, errKilled) {
				s.Error(err)
			}
		}
	}
	stop := make(chan struct{})
	var dispatchers, writers sync.WaitGroup
	for range 2 {
		dispatchers.Go(func() {
			for d := dispatcher(); ; round(d) {
				select {
				case <-stop:
					return
				default:
				}
			}
		})
	}
	channels := []string{"r1", "r2", "r3"}
	for w := range 3 {
		writers.Go(func() { s.writeFields(mortal{store, alive}, rand.New(rand.NewPCG(1, uint64(w))), channels) })
	}
	writers.Wait()
	close(stop)
	dispatchers.Wait()

	killing.Lock()
	rate = 0
	killing.Unlock()
	d := dispatcher()
	for round(d); !s.allReported(sender, channels); round(d) {
		if s.Failed() {
			return
		}
	}
}

// writeFields makes random changes, and records their ends as a broker does.
func (s *stores) writeFields(store events.Store, r *rand.Rand, channels []string) {
	fields := recording.NewFields(events.NewRecorder(store, nil), nil, zerolog.Nop())
	for i := range 60 {
		channel := channels[r.IntN(len(channels))]
		if err := fields.Track(s.Context(), []string{channel})[0]; err != nil {
			s.Error(err)
			return
		}
		op := set(fmt.Sprint("f/", r.IntN(8)), time.Duration(r.IntN(20))*time.Millisecond)
		client := fmt.Sprint("c", r.IntN(3))
		u := &state.Update{Ops: []state.Op{op}, Client: client, Generation: int64(i), Server: "a"}
		if r.IntN(3) == 0 {
			u.Ops[0].Own, u.Ops[0].Grace = state.Own, time.Duration(r.IntN(5))*time.Millisecond
		}
		if r.IntN(10) == 0 {
			u.Keep = time.Millisecond
		}
		a, err := s.queue.AppendChannel(s.Context(), queue.ChannelPush{Channel: channel, Update: u})
		if _, refused := errors.AsType[*state.Refusal](err); err != nil && !refused {
			s.Error(err)
		}
		changes := []queue.Appended{a}
		if r.IntN(3) == 0 {
			conn := state.Connection{Client: client, Generation: int64(i), Server: "a"}
			kind := []queue.StepKind{queue.OwnerEnded, queue.OwnerUnsubscribed, queue.ServerEnded}[r.IntN(3)]
			o := s.queue.StepStates(s.Context(), []queue.StateStep{{Channel: channel, Kind: kind, Conn: conn}})[0]
			if o.Err != nil {
				s.Error(o.Err)
			}
			changes = append(changes, o.Value)
		}
		if r.IntN(5) > 0 { // else the process is killed
			fields.Changed(s.Context(), slices.Repeat([]string{channel}, len(changes)), changes)
		}
	}
}

// allReported reports whether no field will end, and every end in the logs has made an event.
func (s *stores) allReported(sender *collector, channels []string) bool {
	s.Helper()
	for _, channel := range channels {
		if s.queue.ReadStates(s.Context(), []queue.StateRead{{Channel: channel}})[0].Value.Due > 0 {
			return false
		}
	}
	sender.mu.Lock()
	defer sender.mu.Unlock()
	for _, channel := range channels {
		e := New(s, s.queue)
		var want []string
		for position := (events.FieldsPosition{Channel: channel}); ; {
			ended := e.EndFields(s.Context(), []events.FieldsPosition{position})[0]
			ok(s.T, ended.Err)
			for _, m := range ended.Messages {
				want = append(want, fmt.Sprint(m.ID, m.Cleared, m.Gone))
			}
			if position.After = ended.Upto; !ended.More {
				break
			}
		}
		got := sender.channels[channel]
		if len(got) > len(want) || !slices.Equal(got, want[:len(got)]) {
			s.Fatalf("%s: events %q, want %q", channel, got, want)
		}
		if len(got) < len(want) {
			return false
		}
		s.Logf("%s: %d events", channel, len(got))
	}
	return true
}
