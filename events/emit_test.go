package events

import "testing"

// TestEmit checks that an event of another package is created once, is stored under the same id
// when it is emitted again, and is omitted if its kind is not wanted.
func TestEmit(t *testing.T) {
	eachStore(t, func(t *testing.T, open openFunc) {
		h := newHarness(t, open, nil)
		emit := func(key, data string) {
			t.Helper()
			ok(t, h.Recorder.Emit(t.Context(), string(RoomEnded), "room:1", key, []byte(data)))
		}
		emit("1", `{"channel":"a"}`)
		emit("1", `{"channel":"b"}`)
		emit("2", `{}`)
		h.runRounds()
		h.wantEvents("two events", "room_ended a", "room_ended ")
		emit("1", `{"channel":"a"}`)
		h.runRounds()
		if n := h.endpoint.repeated; n != 1 {
			t.Errorf("%d events have the id of an earlier one, want 1", n)
		}
		h.wantEvents("a repeated event")
		for _, bad := range []string{"[]", "", "{", "1"} {
			if err := h.Recorder.Emit(t.Context(), string(RoomEnded), "room:1", "3", []byte(bad)); err == nil {
				t.Errorf("%q is accepted", bad)
			}
		}
	})
}
