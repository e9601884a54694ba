package queue

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestStoreClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c storeClock
		equal(t, "before any reading", c.minimum(), 0)
		c.update(1000)
		equal(t, "at once", c.minimum(), 1000)
		time.Sleep(500 * time.Millisecond) // on the clock of synctest
		equal(t, "half a second later", c.minimum(), 1500)
		c.update(1400)
		equal(t, "after a lower reading", c.minimum(), 1500)
		c.update(2000)
		equal(t, "after a higher reading", c.minimum(), 2000)
	})
}

// TestRedisClockIsBehind simulates a failover to a replica whose clock is minutes slow: ids and
// generations continue from the clock of the old master.
func TestRedisClockIsBehind(t *testing.T) {
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
	// A new caller has no reading yet, and gets one with its first call.
	other := NewRedis(r.pipe, r.opts)
	if id := push(t, other, "sport", 1)[0]; id < first+jump {
		t.Errorf("the next id of a channel is %d, below its last", id)
	}
	if other.clock.minimum() == 0 {
		t.Error("no reading was recorded")
	}
}
