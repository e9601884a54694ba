package notes

import (
	"fmt"
	"testing"
	"time"
)

// start returns a Writer with notes under the key "k".
func start(t *testing.T, repeat time.Duration) (*Writer, *clock) {
	c := newClock()
	w := newWriter(c.now, repeat)
	if floor := w.Start("k"); floor != 0 {
		t.Errorf("floor %d at first", floor)
	}
	return w, c
}

func wantSettled(t *testing.T, w *Writer, want uint64) {
	t.Helper()
	if got := w.Settled(); got != want {
		t.Errorf("%d settled, want %d", got, want)
	}
}

// TestSettledWaitsForSpans checks that no note of an open span is settled, nor a note whose
// pipeline is not answered.
func TestSettledWaitsForSpans(t *testing.T) {
	w, _ := start(t, 0)
	first := w.Open()
	p1 := w.Begin("k", channels("a"))
	second := w.Open()
	p2 := w.Begin("k", channels("b"))
	wantSettled(t, w, 0)
	p2.End(false)
	second.Close()
	wantSettled(t, w, 0)
	uncertain := first.Again()
	p1.End(false)
	first.Close()
	wantSettled(t, w, 0) // the outcome is unknown
	uncertain.Close()
	wantSettled(t, w, 2)
	p3 := w.Begin("k", channels("c"))
	if p3.Entry.Number != 3 || p3.Entry.Settled != 2 {
		t.Errorf("note %+v", p3.Entry)
	}
	wantSettled(t, w, 2) // a pipeline without a span
	p3.End(false)
	wantSettled(t, w, 3)
	if len(w.spans) != 0 {
		t.Errorf("%v are open", w.spans)
	}
}

// TestRepeatedNames checks that a name is not noted again within a second after its note is
// confirmed, and that the note does not settle as long as later writes rely on it.
func TestRepeatedNames(t *testing.T) {
	w, c := start(t, time.Second)
	noted := func(names ...string) string {
		t.Helper()
		p := w.Begin("k", channels(names...))
		p.End(false)
		return texts(p.Entry.Names)
	}
	p := w.Begin("k", channels("a"))
	if got := noted("a"); got != "ca" {
		t.Errorf("%q was noted before the first note is confirmed, want a", got)
	}
	p.End(false)
	if got := noted("a", "b"); got != "cb" {
		t.Errorf("%q was noted, want b", got)
	}
	if got := noted("b", "a"); got != "" {
		t.Errorf("%q was noted, want none", got)
	}
	wantSettled(t, w, 0)
	late := w.Open()
	c.pass(time.Second)
	wantSettled(t, w, 0) // its write may rely on the first note
	late.Close()
	wantSettled(t, w, 3)
	if got := noted("a"); got != "ca" {
		t.Errorf("%q was noted a second later, want a", got)
	}
	lost := w.Begin("k", channels("x"))
	lost.End(true)
	if got := noted("a"); got != "ca" {
		t.Errorf("%q was noted after a lost connection, want a", got)
	}
}

// TestUnnotedWrites checks that writes before Start, and after a failure, have numbers up to the
// floor.
func TestUnnotedWrites(t *testing.T) {
	w := newWriter(newClock().now, 0)
	for range 3 {
		p := w.Begin("k", channels("a"))
		if p.Entry.Number != 0 || p.RemoveFloor {
			t.Errorf("%+v before Start", p)
		}
		p.End(false)
	}
	if floor := w.Start("k"); floor != 3 {
		t.Errorf("floor %d, want 3", floor)
	}
	p := w.Begin("k", channels("a"))
	w.Fail("k")
	p.End(false)
	if p := w.Begin("k", channels("a")); !p.RemoveFloor || p.Entry.Number != 0 {
		t.Errorf("%+v after a failure", p)
	}
	w.Removed("k")
	if p := w.Begin("k", channels("a")); p.RemoveFloor {
		t.Error("a floor is removed twice")
	}
	if floor := w.Start("k"); floor != 6 || !w.Ready("k") {
		t.Errorf("floor %d, want 6", floor)
	}
}

// TestTrim checks that notes are dropped after keep, and that their names are bounded.
func TestTrim(t *testing.T) {
	w, c := start(t, 0)
	write := func(names int) Write {
		list := make([]string, names)
		for i := range list {
			list[i] = fmt.Sprint(i)
		}
		p := w.Begin("k", channels(list...))
		p.End(false)
		return p
	}
	for range 30 {
		write(1)
		c.pass(time.Second)
		if upTo, past := w.Trim("k"), w.last; upTo != 0 && upTo+uint64(keep/time.Second) > past {
			t.Fatalf("%d of %d notes are removed", upTo, past)
		}
	}
	if n := len(w.logs["k"].buckets); n > 26 {
		t.Errorf("%d buckets", n)
	}
	trimmed := uint64(0)
	for range 3 * maxNames / 1000 {
		p := write(1000)
		if p.Trim != 0 && (p.Trim <= trimmed || p.Trim >= p.Entry.Number) {
			t.Fatalf("up to %d is removed with note %d", p.Trim, p.Entry.Number)
		}
		trimmed = max(trimmed, p.Trim)
		if n := w.logs["k"].names; n > maxNames {
			t.Fatalf("%d names are kept", n)
		}
	}
	if trimmed == 0 {
		t.Error("nothing was removed")
	}
}

func TestNilWriter(t *testing.T) {
	var w *Writer
	span := w.Open()
	span.Again().Close()
	span.Close()
	if w.Settled() != 0 {
		t.Error("a nil Writer has notes")
	}
}

func FuzzDecode(f *testing.F) {
	e := Entry{Number: 300, Settled: 7, Names: channels("a", "")}
	f.Add(string(e.Append(nil)))
	f.Fuzz(func(t *testing.T, text string) {
		e, err := Decode(text)
		if err != nil {
			return
		}
		if again, err := Decode(string(e.Append(nil))); err != nil || texts(again.Names) != texts(e.Names) || again.Number != e.Number {
			t.Errorf("%+v becomes %+v, %v", e, again, err)
		}
	})
}
