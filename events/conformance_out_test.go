package events

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

func testPlaces(t *testing.T, open opener) {
	f := open(t)
	f.tell(t, 3)
	var last int64
	ids := map[string]bool{}
	for _, e := range f.take(t, 10).Events {
		var v struct {
			ID string
			At int64
		}
		ok(t, json.Unmarshal(e.Event, &v))
		ids[v.ID] = true
		if e.Place <= last || v.At <= epochMS || v.At > last/placesPerMS+epochMS+int64(100*365*24*time.Hour/time.Millisecond) {
			t.Errorf("place %d behind %d, time %d", e.Place, last, v.At)
		}
		last = e.Place
	}
	equal(t, "different ids", len(ids), 3)
}

func testSent(t *testing.T, open opener) {
	f := open(t)
	f.tell(t, 40)
	b := f.take(t, 30)
	equal(t, "events", numbers(t, b), seq(1, 30))
	ok(t, f.Sent(t.Context(), b, b.Events[24].Place, 0))
	b = f.take(t, 30)
	equal(t, "behind them", numbers(t, b), seq(26, 40))
	ok(t, f.Sent(t.Context(), b, b.Events[14].Place, 0))
	equal(t, "behind all", len(f.take(t, 30).Events), 0)
	f.tell(t, 1)
	equal(t, "a new one", numbers(t, f.take(t, 30)), seq(1, 1))
}

func seq(from, to int) (ns []int) {
	for n := from; n <= to; n++ {
		ns = append(ns, n)
	}
	return ns
}

func testTakeBytes(t *testing.T, open opener) {
	f := open(t)
	for i := range 5 {
		f.tellOne(t, long(i+1, maxPageBytes*2/5))
	}
	b := f.take(t, 10)
	equal(t, "as many as fit", numbers(t, b), seq(1, 2))
	ok(t, f.Sent(t.Context(), b, b.Events[1].Place, 0))
	f.tellOne(t, long(6, maxPageBytes*2))
	b = f.take(t, 10)
	equal(t, "the next", numbers(t, b), seq(3, 4))
	ok(t, f.Sent(t.Context(), b, b.Events[1].Place, 0))
	b = f.take(t, 10)
	equal(t, "without the large one", numbers(t, b), seq(5, 5))
	ok(t, f.Sent(t.Context(), b, b.Events[0].Place, 0))
	equal(t, "one at least", numbers(t, f.take(t, 10)), seq(6, 6))
}

func testLease(t *testing.T, open opener) {
	f := open(t)
	f.tell(t, 2)
	first := f.take(t, 10)
	equal(t, "another's while it lasts", len(f.take(t, 10).Events), 0)
	f.pass(t, time.Minute+time.Millisecond)
	second := f.take(t, 10)
	equal(t, "another's behind it", len(second.Events), 2)
	fails(t, "who slept: sent", f.Sent(t.Context(), first, first.Events[1].Place, 0), ErrFenced)
	fails(t, "who slept: refused", f.Refused(t.Context(), first, first.Events[1].Place, Refused, 0), ErrFenced)
	_, err := f.Failed(t.Context(), first, first.Events[1].Place, 0, 0)
	fails(t, "who slept: failed", err, ErrFenced)
	equal(t, "the lease of the other one", len(f.take(t, 10).Events), 0)
	ok(t, f.Sent(t.Context(), second, second.Events[0].Place, 0))
	equal(t, "left", numbers(t, f.take(t, 10)), seq(2, 2))
}

func testLeaseRenewed(t *testing.T, open opener) {
	f := open(t)
	f.tell(t, 3)
	b := f.take(t, 10)
	f.pass(t, 40*time.Second)
	ok(t, f.Sent(t.Context(), b, b.Events[0].Place, time.Minute))
	f.pass(t, 40*time.Second)
	equal(t, "another's", len(f.take(t, 10).Events), 0)
	ok(t, f.Refused(t.Context(), b, b.Events[1].Place, Refused, time.Minute))
	f.pass(t, 40*time.Second)
	equal(t, "another's", len(f.take(t, 10).Events), 0)
	ok(t, f.Sent(t.Context(), b, 0, 0)) // given back
	equal(t, "left", numbers(t, f.take(t, 10)), seq(3, 3))
}

func testFailed(t *testing.T, open opener) {
	f := open(t)
	f.tell(t, 2)
	for attempt := range 3 {
		b := f.take(t, 10)
		equal(t, "attempts before", b.Attempts, attempt)
		equal(t, "events", numbers(t, b), seq(1, 2))
		expired, err := f.Failed(t.Context(), b, b.Events[1].Place, 10*time.Second, time.Hour)
		ok(t, err)
		equal(t, "expired", expired, 0)
		f.pass(t, 5*time.Second)
		equal(t, "too early", len(f.take(t, 10).Events), 0)
		f.pass(t, 5*time.Second)
	}
	b := f.take(t, 10)
	ok(t, f.Sent(t.Context(), b, b.Events[0].Place, 0))
	equal(t, "attempts after a success", f.take(t, 10).Attempts, 0)
}

func testExpired(t *testing.T, open opener) {
	f := open(t)
	f.tell(t, 2)
	f.older(t, time.Hour)
	f.tellOne(t, []byte(`"n":3}`))
	f.tellOne(t, []byte(`"n":4}`))
	b := f.take(t, 10)
	expired, err := f.Failed(t.Context(), b, b.Events[0].Place, 0, time.Hour/2)
	ok(t, err)
	equal(t, "expired of those that were tried", expired, 1)
	b = f.take(t, 10)
	expired, err = f.Failed(t.Context(), b, b.Events[2].Place, 0, time.Hour/2)
	ok(t, err)
	equal(t, "expired", expired, 1)
	equal(t, "dead letters", f.dead(t), []string{"expired 1", "expired 2"})
	equal(t, "left", numbers(t, f.take(t, 10)), seq(3, 4))
}

func testRefused(t *testing.T, open opener) {
	f := open(t)
	f.tell(t, 3)
	b := f.take(t, 10)
	ok(t, f.Refused(t.Context(), b, b.Events[0].Place, Refused, time.Minute))
	ok(t, f.Refused(t.Context(), b, b.Events[1].Place, Gone, 0))
	equal(t, "dead letters", f.dead(t), []string{"refused 1", "gone 2"})
	equal(t, "left", numbers(t, f.take(t, 10)), seq(3, 3))
	letters, err := f.Dead(t.Context(), 3, 1, 10)
	ok(t, err)
	equal(t, "behind the first", len(letters), 1)
	if at := letters[0].At; at.Year() < 2026 {
		t.Errorf("given up at %v", at)
	}
}

func testOutCount(t *testing.T, open opener) {
	f := open(t)
	f.bound(bounds{due: 100, watchBytes: 100, out: 3, outBytes: 1000, dead: 10, deadBytes: 1000})
	f.tell(t, 5)
	equal(t, "events", numbers(t, f.take(t, 10)), seq(3, 5))
	equal(t, "dead letters", f.dead(t), []string{"full 1", "full 2"})
	equal(t, "given up", f.givenUp, 2)
}

func testOutBytes(t *testing.T, open opener) {
	f := open(t)
	f.bound(bounds{due: 100, watchBytes: 100, out: 100, outBytes: 1000, dead: 10, deadBytes: 5000})
	for i := range 3 {
		f.tellOne(t, long(i+1, 400))
	}
	b := f.take(t, 10)
	equal(t, "events", numbers(t, b), seq(2, 3))
	ok(t, f.Sent(t.Context(), b, b.Events[1].Place, 0))
	f.tellOne(t, long(4, 400))
	f.tellOne(t, long(5, 400))
	equal(t, "events", numbers(t, f.take(t, 10)), seq(4, 5))
	f.tellOne(t, long(6, 2000))
	equal(t, "dead letters", f.dead(t), []string{"full 1", "full 4", "full 5"})
	equal(t, "given up", f.givenUp, 3)
}

func testDeadBounds(t *testing.T, open opener) {
	f := open(t)
	f.bound(bounds{due: 100, watchBytes: 100, out: 1, outBytes: 10_000, dead: 3, deadBytes: 1200})
	f.tell(t, 6)
	equal(t, "dead letters by count", f.dead(t), []string{"full 3", "full 4", "full 5"})
	f.tellOne(t, long(7, 500))
	b := f.take(t, 10)
	ok(t, f.Refused(t.Context(), b, b.Events[0].Place, Refused, 0))
	f.tellOne(t, long(8, 500))
	b = f.take(t, 10)
	ok(t, f.Refused(t.Context(), b, b.Events[0].Place, Refused, 0))
	equal(t, "dead letters by bytes", f.dead(t), []string{"refused 7", "refused 8"})
}

func testRetry(t *testing.T, open opener) {
	f := open(t)
	f.tell(t, 4)
	b := f.take(t, 3)
	ok(t, f.Refused(t.Context(), b, b.Events[2].Place, Gone, 0))
	moved, err := f.Retry(t.Context(), 3, 2)
	ok(t, err)
	equal(t, "moved", moved, 2)
	after := f.take(t, 10)
	equal(t, "events", numbers(t, after), []int{4, 1, 2})
	equal(t, "the same event", string(after.Events[1].Event), string(b.Events[0].Event))
	if after.Events[1].Place <= after.Events[0].Place {
		t.Errorf("places %v do not grow", after.Events)
	}
	equal(t, "dead letters", f.dead(t), []string{"gone 3"})
	moved, err = f.Retry(t.Context(), 3, 10)
	ok(t, err)
	equal(t, "moved", moved, 1)
	equal(t, "dead letters", f.dead(t), nil)
}

func testRetryRoom(t *testing.T, open opener) {
	f := open(t)
	f.bound(bounds{due: 100, watchBytes: 100, out: 3, outBytes: 10_000, dead: 10, deadBytes: 10_000})
	f.tell(t, 6)
	moved, err := f.Retry(t.Context(), 3, 10)
	ok(t, err)
	equal(t, "moved into a full list", moved, 0)
	b := f.take(t, 10)
	ok(t, f.Sent(t.Context(), b, b.Events[1].Place, 0))
	moved, err = f.Retry(t.Context(), 3, 10)
	ok(t, err)
	equal(t, "moved", moved, 2)
	equal(t, "events", numbers(t, f.take(t, 10)), fmt.Sprint([]int{6, 1, 2}))
}
