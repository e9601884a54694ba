package queue

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestHorizon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var h storeClock
		equal(t, "before any reading", h.minimum(), 0)
		h.update(1000)
		equal(t, "at once", h.minimum(), 1000)
		time.Sleep(500 * time.Millisecond) // of the bubble's clock
		equal(t, "half a second later", h.minimum(), 1500)
		h.update(1400)
		equal(t, "after the reading of a clock that is behind", h.minimum(), 1500)
		h.update(2000)
		equal(t, "after one that is ahead", h.minimum(), 2000)
	})
}

// TestRedisWithAClockBehind is a replica that takes over, minutes behind its master: ids and
// generations go on from where that was.
func TestRedisWithAClockBehind(t *testing.T) {
	f := openRedis(t, Options{})
	r := f.contract.(*Redis)
	first := push(t, f, "news", 1)[0]
	r.clock.ms += (10 * time.Minute).Milliseconds()
	jump := int64(9 * time.Minute / time.Millisecond * idsPerMS)
	for what, id := range map[string]int64{
		"another channel's id": push(t, f, "sport", 1)[0],
		"a client's id":        send(t, f, "phone", 1)[0],
		"a generation":         must(f.Bind(t.Context(), Claim{Client: "tablet", User: "", Server: "b1"}))(t).Generation,
		"a marker's id":        must(f.ConfirmChannel(t.Context(), "news", first+1))(t).ID,
		"a client marker's id": must(f.ConfirmClient(t.Context(), "tv", 1))(t).ID,
	} {
		if id < first+jump {
			t.Errorf("%s is %d, not minutes above %d", what, id, first)
		}
	}
	// A caller of its own has no reading yet, and takes what it finds.
	other := NewRedis(r.pipe, r.opts)
	if id := push(t, other, "sport", 1)[0]; id < first+jump {
		t.Errorf("the next id of a channel is %d, below its last", id)
	}
	if least := other.clock.minimum(); least == 0 {
		t.Error("it took no reading")
	}
}
