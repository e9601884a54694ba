package replay_test

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"switchboard/internal/redistest"
	"switchboard/internal/replay"
	"switchboard/internal/state"
	"switchboard/queue"

	"switchboard/internal/redispipe"
)

// TestRedis reads the log that a queue has stored, and replays it.
func TestRedis(t *testing.T) {
	client := redistest.Start(t).Client(t)
	q := queue.NewRedis(redispipe.New(client, redispipe.Options{}), queue.Options{})
	var ids []int64
	for n := range 3 {
		push := queue.ChannelPush{Channel: "room", Data: []byte("1")}
		if n != 1 {
			push.Update = &state.Update{Ops: []state.Op{{Kind: state.Set, Field: fmt.Sprint("f", n), Value: json.RawMessage(fmt.Sprint(n))}}}
		}
		a, err := q.AppendChannel(t.Context(), push)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, a.ID)
	}
	log, err := replay.Redis(t.Context(), client, "room")
	if err != nil || len(log) != 3 {
		t.Fatalf("%+v, %v", log, err)
	}
	if late := time.Since(replay.Time(ids[0])).Abs(); late > time.Minute {
		t.Errorf("the first id is %v away from now", late)
	}
	steps := 0
	replay.Each(log, func(e replay.Entry, before, after map[string]state.Shown) {
		wantBefore := (steps + 1) / 2
		wantAfter := (steps + 2) / 2
		if e.ID != ids[steps] || steps > 0 && e.Prev != ids[steps-1] || len(before) != wantBefore || len(after) != wantAfter {
			t.Errorf("entry %d is %+v: fields %v, then %v", steps, e, before, after)
		}
		steps++
	})
}
