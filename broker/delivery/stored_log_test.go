package delivery

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"switchboard/broker/peer"
	"switchboard/internal/slots"
	"switchboard/internal/state"
)

func TestStoredLog(t *testing.T) {
	channel, all := queueKey{peer.Channel, "news"}, slots.All()
	type stored struct {
		epoch    uint64
		id, prev int64
	}
	for name, c := range map[string]struct {
		stored []stored
		want   storedIDs
		lost   bool // the log detects a loss
	}{
		"one":                                   {[]stored{{1, 10, 9}}, storedIDs{10, nil, 1}, false},
		"consecutive":                           {[]stored{{1, 10, 9}, {1, 11, 10}}, storedIDs{11, nil, 1}, false},
		"other writers in between":              {[]stored{{1, 10, 9}, {1, 15, 14}}, storedIDs{15, nil, 1}, false},
		"answers out of order":                  {[]stored{{1, 11, 10}, {1, 10, 9}, {1, 12, 11}}, storedIDs{12, nil, 1}, false},
		"a duplicate changes nothing":           {[]stored{{1, 11, 10}, {1, 10, -1}}, storedIDs{11, nil, 1}, false},
		"a new history":                         {[]stored{{1, 10, 9}, {2, 20, 19}}, storedIDs{20, []int64{10}, 2}, false},
		"a new history with a slow clock":       {[]stored{{1, 10, 9}, {2, 5, 4}}, storedIDs{5, []int64{10}, 2}, false},
		"earlier histories stay":                {[]stored{{1, 10, 9}, {2, 20, 19}, {3, 30, 29}}, storedIDs{30, []int64{10, 20}, 3}, false},
		"two losses":                            {[]stored{{1, 10, 9}, {1, 20, 8}, {1, 30, 15}}, storedIDs{30, []int64{10, 20}, 1}, true},
		"an older predecessor":                  {[]stored{{1, 10, 9}, {1, 20, 8}}, storedIDs{20, []int64{10}, 1}, true},
		"an older predecessor, then another id": {[]stored{{1, 10, 9}, {1, 20, 8}, {1, 21, 20}}, storedIDs{21, []int64{10}, 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var epoch uint64
			lost := false
			l := newStoredLog(func(string) uint64 { return epoch }, func() { lost = true })
			for _, s := range c.stored {
				epoch = s.epoch
				l.add(channel, s.id, s.prev)
			}
			if got := l.snapshot(&all)[channel]; !reflect.DeepEqual(got, c.want) || lost != c.lost {
				t.Errorf("got %+v, lost %v; want %+v, %v", got, lost, c.want, c.lost)
			}
			l.removeConfirmed(channel, c.want.earlier)
			if got := l.snapshot(&all)[channel]; got.earlier != nil || got.last != c.want.last {
				t.Errorf("%+v is left after the confirmation", got)
			}
		})
	}
}

// TestNoLogWithoutEpoch checks that nothing is recorded for a store that cannot lose messages.
func TestNoLogWithoutEpoch(t *testing.T) {
	all := slots.All()
	for name, epoch := range map[string]func(string) uint64{"none": nil, "one": func(string) uint64 { return 1 }} {
		p := New(Options{
			Queue: &fakeQueue{servers: []string{"me"}}, Epoch: epoch, Stored: func(string, time.Duration) {},
			Self: func() string { return "me" }, Live: func(string) bool { return true }, Local: func(peer.Hint, state.Message) {},
		})
		if _, err := p.ToChannel(t.Context(), "news", Payload{}); err != nil {
			t.Fatal(err)
		}
		if got := len(p.log.snapshot(&all)); (got == 0) != (epoch == nil) {
			t.Errorf("epoch %s: %d queues are recorded", name, got)
		}
	}
}

// TestAddDuringConfirm checks that ids that are added during a confirmation stay.
func TestAddDuringConfirm(t *testing.T) {
	channel, all := queueKey{peer.Channel, "news"}, slots.All()
	var epoch uint64
	l := newStoredLog(func(string) uint64 { return epoch }, func() {})
	for epoch = 1; epoch <= 3; epoch++ {
		l.add(channel, int64(10*epoch), 0)
	}
	epoch = 4
	asked := l.snapshot(&all)[channel].earlier
	l.add(channel, 40, 0)
	l.removeConfirmed(channel, asked)
	if got := l.snapshot(&all)[channel]; !reflect.DeepEqual(got, storedIDs{40, []int64{30}, 4}) {
		t.Errorf("after the confirmation of %v: %+v", asked, got)
	}
	for ; epoch < 100; epoch++ {
		l.add(channel, int64(10*epoch), 0)
	}
	if n := len(l.snapshot(&all)[channel].earlier); n != maxHistories {
		t.Errorf("%d histories are remembered, want %d", n, maxHistories)
	}
}

func TestStoredLogIsBounded(t *testing.T) {
	all := slots.All()
	l := newStoredLog(func(string) uint64 { return 0 }, func() {})
	for n := range int64(maxQueues + 10) {
		if got, want := l.add(queueKey{peer.Client, fmt.Sprint(n)}, n+1, n), n < maxQueues; got != want || l.partial() == want {
			t.Fatalf("queue %d is remembered: %t, and all are: %t", n, got, !l.partial())
		}
		l.addUncertain(queueKey{peer.Client, string(rune(n))})
	}
	if !l.add(queueKey{peer.Client, "0"}, maxQueues, 1) {
		t.Error("the next message of a queue that is remembered is not")
	}
	if len(l.recent) > maxQueues || len(l.uncertain) > maxUncertain+1 {
		t.Errorf("%d queues, %d uncertain ones", len(l.recent), len(l.uncertain))
	}
	l.rotatedAt = l.rotatedAt.Add(-keepTime)
	l.rotate()
	if !l.partial() {
		t.Error("one rotation forgets that messages were not remembered")
	}
	if len(l.recent) != 0 || len(l.snapshot(&all)) == 0 {
		t.Errorf("%d recent queues, %d in all: one rotation must keep them", len(l.recent), len(l.snapshot(&all)))
	}
	l.rotatedAt = l.rotatedAt.Add(-keepTime)
	l.rotate()
	if len(l.snapshot(&all)) != 0 || l.partial() {
		t.Errorf("%d queues after two rotations", len(l.snapshot(&all)))
	}
}
