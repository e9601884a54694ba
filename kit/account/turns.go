package account

import (
	"cmp"
	"container/heap"
	"context"
	"runtime"
	"sync"
	"time"
)

// turns decides when each password is computed. Only so many are computed at once that the broker
// keeps half of the processors. Callers that wait get their turns by start-time fair queueing
// (Goyal, Vin, Cheng, 1996): each account and each address has its own queue, and the queues take
// turns. So many attempts of one account, or of one address, delay the logins of others by one
// computation.
type turns struct {
	processors func() int // how many the process may use

	mu      sync.Mutex // guards the fields below
	running int
	clock   int64            // the start of the turn that began last, in turns
	arrived int64            // how many callers have come
	last    map[string]int64 // the start of the last turn of a queue, if it is after clock
	waiting turnHeap
}

// turn is a caller that waits.
type turn struct {
	start int64
	order int64         // of its arrival
	ready chan struct{} // closed when the turn begins
	index int           // in turnHeap, -1 outside
}

func newTurns() *turns {
	return &turns{processors: func() int { return runtime.GOMAXPROCS(0) }, last: map[string]int64{}}
}

// take waits for a turn. queues are the queues of the caller; "" is ignored. The caller calls done
// when the computation has ended.
func (t *turns) take(ctx context.Context, queues ...string) (done func(), err error) {
	w := t.enter(queues)
	select {
	case <-w.ready:
	case <-ctx.Done():
		if !t.withdraw(w) {
			t.end() // the turn had begun
		}
		return nil, ctx.Err()
	}
	began := time.Now()
	return func() {
		if t.processors() > 1 {
			t.end()
			return
		}
		// The only processor is free for as long as the computation took.
		time.AfterFunc(time.Since(began), t.end)
	}, nil
}

// enter adds a caller to its queues, and begins the turns that can begin.
func (t *turns) enter(queues []string) *turn {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.arrived++
	w := &turn{start: t.clock, order: t.arrived, ready: make(chan struct{})}
	for _, q := range queues {
		if last, waits := t.last[q]; waits && q != "" {
			w.start = max(w.start, last+1)
		}
	}
	t.forgetSomeLocked()
	for _, q := range queues {
		if q != "" {
			t.last[q] = w.start
		}
	}
	heap.Push(&t.waiting, w)
	t.beginLocked()
	return w
}

// forgetSomeLocked looks at a few queues, and forgets those whose last turn has begun.
func (t *turns) forgetSomeLocked() {
	looked := 0
	for q, last := range t.last {
		if looked++; looked > 4 {
			return
		}
		if last < t.clock {
			delete(t.last, q)
		}
	}
}

// beginLocked begins the turns for which there are processors.
func (t *turns) beginLocked() {
	for len(t.waiting) > 0 && t.running < max(1, t.processors()/2) {
		w := heap.Pop(&t.waiting).(*turn)
		t.clock = max(t.clock, w.start)
		t.running++
		close(w.ready)
	}
	if t.running == 0 {
		clear(t.last)
	}
}

// end ends a turn.
func (t *turns) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.running--
	t.beginLocked()
}

// withdraw removes a caller that no longer waits. It returns false if its turn has begun.
func (t *turns) withdraw(w *turn) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if w.index < 0 {
		return false
	}
	heap.Remove(&t.waiting, w.index)
	return true
}

// turnHeap is a heap of turns by start, and then by arrival. It implements heap.Interface.
type turnHeap []*turn

// Len implements heap.Interface.
func (h turnHeap) Len() int { return len(h) }

// Less implements heap.Interface.
func (h turnHeap) Less(i, j int) bool {
	return cmp.Or(cmp.Compare(h[i].start, h[j].start), cmp.Compare(h[i].order, h[j].order)) < 0
}

// Swap implements heap.Interface.
func (h turnHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].index, h[j].index = i, j
}

// Push implements heap.Interface.
func (h *turnHeap) Push(v any) {
	w := v.(*turn)
	w.index = len(*h)
	*h = append(*h, w)
}

// Pop implements heap.Interface.
func (h *turnHeap) Pop() any {
	last := len(*h) - 1
	w := (*h)[last]
	(*h)[last], w.index = nil, -1
	*h = (*h)[:last]
	return w
}
