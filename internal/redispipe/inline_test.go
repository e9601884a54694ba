package redispipe

import (
	"context"
	"fmt"
	"testing"
)

// TestRunInline checks that a caller that makes a round trip itself returns with its own reply, and
// that other goroutines send the calls that were queued meanwhile.
func TestRunInline(t *testing.T) {
	client := single.Client(t)
	g := newGate(client)
	seen := &trips{}
	p := New(client, Options{MaxInFlight: 1, Observe: seen.observe})
	key := prefix()
	count := func() {
		if _, err := incr(context.Background(), p, key); err != nil {
			t.Error(err)
		}
	}
	first := make(chan struct{})
	go func() {
		defer close(first)
		count()
	}()
	<-g.blocked
	calls := &caller{t: t, pipe: p}
	for i := range 3 {
		calls.start(i+1, count)
	}
	g.release <- struct{}{}
	<-g.blocked // the others are in flight
	<-first
	g.release <- struct{}{}
	calls.Wait()
	awaitIdle(p)
	for range 2 { // nothing is in flight, so each makes its own round trip
		go g.pass()
		count()
		awaitIdle(p)
	}
	seen.want(t, 1, 3, 1, 1)
}

// awaitIdle returns when no round trip is in flight. The last one ends shortly after its reply.
func awaitIdle(p *Pipe) { until(p, func() bool { return inFlightLocked(p) == 0 }) }

func inFlightLocked(p *Pipe) (n int) {
	for _, l := range p.lanes {
		n += l.inFlight
	}
	return n
}

// TestRunInlineOfMany checks a call with more targets than fit into one round trip.
func TestRunInlineOfMany(t *testing.T) {
	client := single.Client(t)
	seen := &trips{}
	p := New(client, Options{MaxInFlight: 1, MaxBatch: 2, Observe: seen.observe})
	if err := single.Client(t).ScriptFlush(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	sum, key := add(t), prefix()
	var targets []Target
	for i := range 5 {
		targets = append(targets, to(sum, i, fmt.Sprint(key, i)))
	}
	for round := range 2 {
		for i, a := range p.EvalEach(context.Background(), targets...) {
			if want := int64(1000+i) * int64(round+1); a.Value != want || a.Err != nil {
				t.Errorf("target %d: %v, %v; want %d", i, a.Value, a.Err, want)
			}
		}
	}
	seen.want(t, 1, 1, 1, 1, 1, 1, 1) // a resend with the source, then two, two and one target in each round
}
