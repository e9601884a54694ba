package js_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// A step is a page or a message, and the state that a client has after it.
type step struct {
	wire.Event
	Held   bool                         `json:"held"`
	At     int64                        `json:"at"`     // the id of the state
	Expect map[string][]json.RawMessage `json:"expect"` // by field: [id, value, until, away]
}

// writeVectors writes runs of random pages and messages to a file and returns its path. The states
// are those of state.Follower.
func writeVectors(t *testing.T) string {
	t.Helper()
	var runs [][]step
	for seed := range uint64(60) {
		runs = append(runs, randomRun(t, rand.New(rand.NewPCG(seed, 1)), 60))
	}
	text, err := json.Marshal(runs)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "vectors.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func randomRun(t *testing.T, r *rand.Rand, n int) (run []step) {
	t.Helper()
	var follower state.Follower
	id, series := int64(100), int64(0)
	for range n {
		id += int64(r.IntN(2)) // some messages are not above the id of the series
		ev := wire.Event{ID: new(id), StateEvent: new(wire.StateEvent)}
		switch r.IntN(5) {
		case 0:
			ev.Type, ev.First, series = wire.TypeState, true, id
		case 1:
			ev.Type, ev.ID = wire.TypeState, new(series)
		default:
			ev.Type = wire.TypeMessage
			*ev.StateEvent = randomChange(r)
		}
		if ev.Type == wire.TypeState {
			ev.More = r.IntN(3) > 0
			ev.Fields = randomFields(r, *ev.ID)
			if err := follower.Page(*ev.ID, ev.More, ev.StateEvent); err != nil {
				t.Fatal(err)
			}
		} else {
			follower.Message(*ev.ID, ev.StateEvent)
		}
		run = append(run, step{ev, follower.Held(), follower.Map().ID, show(follower.Map())})
	}
	return run
}

var names = []string{"a", "b", "seat/1", "seat/2", "__proto__", "constructor"}

func someNames(r *rand.Rand) (some []string) {
	for _, name := range names {
		if r.IntN(4) == 0 {
			some = append(some, name)
		}
	}
	return some
}

func someTimes(r *rand.Rand) map[string]int64 {
	times := map[string]int64{}
	for _, name := range someNames(r) {
		times[name] = int64(r.IntN(3)) * 1000
	}
	return times
}

func randomChange(r *rand.Rand) wire.StateEvent {
	change := wire.StateEvent{
		Cleared: r.IntN(12) == 0, Del: someNames(r), Back: someNames(r), Set: map[string]json.RawMessage{}, Gone: map[string]string{},
		Until: someTimes(r), Away: someTimes(r),
	}
	for _, name := range someNames(r) {
		change.Set[name] = randomValue(r)
	}
	for _, name := range someNames(r) {
		change.Gone[name] = state.Expired
	}
	return change
}

func randomValue(r *rand.Rand) json.RawMessage {
	return json.RawMessage([]string{"null", "0", `""`, `{"x":[1,2]}`, fmt.Sprint(r.IntN(100))}[r.IntN(5)])
}

// randomFields returns the fields of a page.
func randomFields(r *rand.Rand, id int64) json.RawMessage {
	writer := state.FieldsWriter{Filter: state.Filter{State: true}}
	for _, name := range someNames(r) {
		writer.Add(name, &state.Shown{ID: id - int64(r.IntN(50)), Value: randomValue(r), Until: int64(r.IntN(2)) * 5000, Away: r.IntN(3) == 0})
	}
	return writer.JSON()
}

func show(m *state.Map) map[string][]json.RawMessage {
	shown := map[string][]json.RawMessage{}
	for _, name := range slices.Sorted(maps.Keys(m.Fields)) {
		f := m.Fields[name]
		shown[name] = []json.RawMessage{
			json.RawMessage(fmt.Sprint(f.ID)), f.Value, json.RawMessage(fmt.Sprint(f.Until)), json.RawMessage(fmt.Sprint(f.Away)),
		}
	}
	return shown
}
