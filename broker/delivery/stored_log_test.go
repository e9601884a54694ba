package delivery

import (
	"reflect"
	"testing"
	"time"

	"switchboard/broker/peer"
)

func TestWitness(t *testing.T) {
	news := queueKey{peer.Channel, "news"}
	type stored struct {
		epoch    uint64
		id, prev int64
	}
	for name, c := range map[string]struct {
		stored []stored
		want   storedIDs
		lost   bool // it shows by itself
	}{
		"one":                               {[]stored{{1, 10, 9}}, storedIDs{10, nil, 1}, false},
		"a row":                             {[]stored{{1, 10, 9}, {1, 11, 10}}, storedIDs{11, nil, 1}, false},
		"others write in between":           {[]stored{{1, 10, 9}, {1, 15, 14}}, storedIDs{15, nil, 1}, false},
		"answers overtake each other":       {[]stored{{1, 11, 10}, {1, 10, 9}, {1, 12, 11}}, storedIDs{12, nil, 1}, false},
		"a duplicate says nothing":          {[]stored{{1, 11, 10}, {1, 10, -1}}, storedIDs{11, nil, 1}, false},
		"another history":                   {[]stored{{1, 10, 9}, {2, 20, 19}}, storedIDs{20, []int64{10}, 2}, false},
		"with a clock that is behind":       {[]stored{{1, 10, 9}, {2, 5, 4}}, storedIDs{5, []int64{10}, 2}, false},
		"what was before stays":             {[]stored{{1, 10, 9}, {2, 20, 19}, {3, 30, 29}}, storedIDs{30, []int64{10, 20}, 3}, false},
		"one after the other":               {[]stored{{1, 10, 9}, {1, 20, 8}, {1, 30, 15}}, storedIDs{30, []int64{10, 20}, 1}, true},
		"an older one stands in front":      {[]stored{{1, 10, 9}, {1, 20, 8}}, storedIDs{20, []int64{10}, 1}, true},
		"so it does in the next one's back": {[]stored{{1, 10, 9}, {1, 20, 8}, {1, 21, 20}}, storedIDs{21, []int64{10}, 1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			var epoch uint64
			lost := false
			w := newStoredLog(func() uint64 { return epoch }, func() { lost = true })
			for _, s := range c.stored {
				epoch = s.epoch
				w.add(news, s.id, s.prev)
			}
			if got := w.snapshot()[news]; !reflect.DeepEqual(got, c.want) || lost != c.lost {
				t.Errorf("got %+v, lost %v; want %+v, %v", got, lost, c.want, c.lost)
			}
			w.removeConfirmed(news, c.want.earlier)
			if got := w.snapshot()[news]; got.earlier != nil || got.last != c.want.last {
				t.Errorf("still %+v after it was confirmed", got)
			}
		})
	}
}

// TestNothingToWitness: of a store that loses nothing, nothing is remembered.
func TestNothingToWitness(t *testing.T) {
	for name, epoch := range map[string]func() uint64{"none": nil, "one": func() uint64 { return 1 }} {
		p := New(Options{
			Queue: &fakeQueue{servers: []string{"me"}}, Epoch: epoch, Stored: func(string, time.Duration) {},
			Self: func() string { return "me" }, Live: func(string) bool { return true }, Local: func(peer.Hint) {},
		})
		if _, err := p.ToChannel(t.Context(), "news", Payload{}); err != nil {
			t.Fatal(err)
		}
		if got := len(p.log.snapshot()); (got == 0) != (epoch == nil) {
			t.Errorf("epoch %s: %d notes", name, got)
		}
	}
}

func TestWhatComesWhileOneAsks(t *testing.T) {
	news := queueKey{peer.Channel, "news"}
	epoch := uint64(1)
	w := newStoredLog(func() uint64 { return epoch }, func() {})
	for ; epoch <= 3; epoch++ {
		w.add(news, int64(10*epoch), 0)
	}
	asked := w.snapshot()[news].earlier
	w.add(news, 40, 0)
	w.removeConfirmed(news, asked)
	if got := w.snapshot()[news]; !reflect.DeepEqual(got, storedIDs{40, []int64{30}, 4}) {
		t.Errorf("asked for %v: %+v", asked, got)
	}
	for ; epoch < 100; epoch++ {
		w.add(news, int64(10*epoch), 0)
	}
	if n := len(w.snapshot()[news].earlier); n != maxHistories {
		t.Errorf("%d histories are remembered", n)
	}
}

func TestWitnessIsBounded(t *testing.T) {
	w := newStoredLog(func() uint64 { return 0 }, func() {})
	for n := range int64(maxQueues + 10) {
		w.add(queueKey{peer.Client, string(rune(n))}, n+1, n)
		w.addUncertain(queueKey{peer.Client, string(rune(n))})
	}
	if len(w.recent) > maxQueues || len(w.uncertain) > maxUncertain {
		t.Errorf("%d notes, %d doubts", len(w.recent), len(w.uncertain))
	}
	w.rotatedAt = w.rotatedAt.Add(-keepTime)
	w.rotate()
	if len(w.recent) != 0 || len(w.snapshot()) == 0 {
		t.Errorf("%d recent notes, %d in all: one turn must keep them", len(w.recent), len(w.snapshot()))
	}
	w.rotatedAt = w.rotatedAt.Add(-keepTime)
	w.rotate()
	if len(w.snapshot()) != 0 {
		t.Errorf("%d notes after two turns", len(w.snapshot()))
	}
}
