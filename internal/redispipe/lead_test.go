package redispipe

import (
	"context"
	"fmt"
	"testing"
)

// TestLeadEnds: who runs round trips for himself leaves with his own answer, and what came meanwhile goes on without him.
func TestLeadEnds(t *testing.T) {
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
	<-g.arrived
	calls := &caller{t: t, pipe: p}
	for i := range 3 {
		calls.later(i+1, count)
	}
	g.release <- struct{}{}
	<-g.arrived // the others are under way
	<-first
	g.release <- struct{}{}
	calls.Wait()
	idle(p)
	for range 2 { // nobody is at work any more, so each leads
		go g.one()
		count()
		idle(p)
	}
	seen.want(t, 1, 3, 1, 1)
}

// idle returns when the places of all round trips have been given back, which is a little after the last answer.
func idle(p *Pipe) { until(p, func() bool { return p.plain.inFlight == 0 }) }

// TestLeadOfMany: who wants more than one round trip has room for gets all of it.
func TestLeadOfMany(t *testing.T) {
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
	seen.want(t, 1, 1, 1, 1, 1, 1, 1) // once more with the text, then two, two and one target each time
}
