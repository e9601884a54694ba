package limit

import (
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

func TestKeyed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := NewKeyed(New(1, 2))
		for i, want := range []time.Duration{0, 0, time.Second} {
			if wait := k.Take("a"); wait != want {
				t.Errorf("call %d waits %v, want %v", i, wait, want)
			}
		}
		if wait := k.Take("b"); wait != 0 {
			t.Errorf("another key waits %v", wait)
		}
		time.Sleep(time.Second)
		if wait := k.Take("a"); wait != 0 {
			t.Errorf("after a second the key waits %v", wait)
		}
		time.Sleep(time.Hour)
		for i := range 1000 {
			k.Take(strconv.Itoa(i))
			time.Sleep(time.Minute)
		}
		if n := len(k.buckets); n > 10 {
			t.Errorf("%d buckets are kept, one of them is not full", n)
		}
	})
	var none *Keyed
	if wait := none.Take("a"); wait != 0 {
		t.Errorf("no limit waits %v", wait)
	}
}
