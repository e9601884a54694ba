package peer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// clocked returns an inbound that heard nothing, and its clock.
func clocked() (*inbound, *time.Time) {
	in, now := newInbound(), time.Unix(1e9, 0)
	in.now = func() time.Time { return now }
	return in, &now
}

func (in *inbound) mustBegin(t *testing.T, from string) (*source, context.Context) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	s, err := in.begin(from, stop)
	if err != nil {
		t.Fatal(err)
	}
	return s, ctx
}

func TestLostByNumber(t *testing.T) {
	in, now := clocked()
	in.setLive(map[string]bool{"a": true})
	s, _ := in.mustBegin(t, "a")
	for _, step := range []struct {
		name   string
		number uint64
		n      int
		lost   bool
	}{
		{"first batch, whatever its number", 7, 2, true},
		{"next", 9, 0, false},
		{"heartbeat", 9, 0, false},
		{"hints", 9, 3, false},
		{"one is missing", 13, 1, true},
		{"goes on behind it", 14, 0, false},
		{"backwards", 2, 1, true},
		{"goes on", 3, 0, false},
	} {
		*now = now.Add(time.Millisecond)
		in.batch(s, step.number, step.n)
		if got := in.lost(); got != step.lost {
			t.Errorf("%s: lost is %v", step.name, got)
		}
		if in.lost() {
			t.Errorf("%s: told twice", step.name)
		}
	}
	in.end("a", s)
	if !in.lost() {
		t.Error("the end of a link is no evidence")
	}
}

func TestLostByFirstNumberZero(t *testing.T) {
	in, _ := clocked()
	s, _ := in.mustBegin(t, "a")
	// What the sender dropped before it counted at all is not in the number.
	if in.batch(s, 0, 0); !in.lost() {
		t.Error("the first batch of a link is no evidence")
	}
}

func TestLostByDeafness(t *testing.T) {
	for name, c := range map[string]struct {
		hints    int // in the last batch
		patience time.Duration
	}{
		"in use":  {1, time.Second},
		"at rest": {0, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) { lostByDeafness(t, c.hints, c.patience) })
	}
}

func lostByDeafness(t *testing.T, hints int, patience time.Duration) {
	in, now := clocked()
	if in.lost() {
		t.Error("alone, and something is lost")
	}
	in.setLive(map[string]bool{"a": true})
	s, _ := in.mustBegin(t, "a")
	in.batch(s, 0, hints)
	in.lost()
	for _, step := range []struct {
		name  string
		after time.Duration
		lost  bool
	}{
		{"silent as long as it may be", patience, false},
		{"for longer", time.Millisecond, true},
		{"told just now", 999 * time.Millisecond, false},
		{"a second later", time.Millisecond, true},
		{"told again just now", 500 * time.Millisecond, false},
		{"and again", 500 * time.Millisecond, true},
	} {
		*now = now.Add(step.after)
		if got := in.lost(); got != step.lost {
			t.Errorf("%s: lost is %v", step.name, got)
		}
	}
	*now = now.Add(time.Minute)
	if in.batch(s, uint64(hints), 0); in.lost() {
		t.Error("it is heard again, nothing is missing, and something is lost")
	}
	in.setLive(map[string]bool{"a": true, "b": true})
	if !in.lost() {
		t.Error("a live server without a link is not missed")
	}
	*now = now.Add(time.Minute)
	in.batch(s, uint64(hints), 0)
	if in.setLive(map[string]bool{"a": true}); in.lost() {
		t.Error("a server that is gone is missed")
	}
}

// TestPatience follows what a sender promises: it beats quickly for 5 s behind a hint, or one that it dropped.
func TestPatience(t *testing.T) {
	in, now := clocked()
	s, _ := in.mustBegin(t, "a")
	for _, step := range []struct {
		name   string
		after  time.Duration
		number uint64
		n      int
		want   time.Duration
	}{
		{"the first batch, whatever its number", 0, 3, 0, restDeaf},
		{"a hint", time.Second, 3, 1, deafAfter},
		{"heartbeat", 4 * time.Second, 4, 0, deafAfter},
		{"the last quick one, perhaps", 500 * time.Millisecond, 4, 0, restDeaf},
		{"at rest", 2 * time.Second, 4, 0, restDeaf},
		{"one is missing", 2 * time.Second, 5, 0, deafAfter},
	} {
		*now = now.Add(step.after)
		if in.batch(s, step.number, step.n); s.patience() != step.want {
			t.Errorf("%s: it may be silent for %v, want %v", step.name, s.patience(), step.want)
		}
	}
}

func TestInboundNewerWins(t *testing.T) {
	in, _ := clocked()
	older, olderCtx := in.mustBegin(t, "a")
	newer, newerCtx := in.mustBegin(t, "a")
	if olderCtx.Err() == nil || newerCtx.Err() != nil {
		t.Fatal("not the older link was ended")
	}
	if in.end("a", older); in.sources["a"] != newer {
		t.Error("the end of the older link took the newer with it")
	}
	if in.end("a", newer); len(in.sources) != 0 {
		t.Error("an ended link is still known")
	}
}

func TestInboundSetLive(t *testing.T) {
	in, _ := clocked()
	_, a := in.mustBegin(t, "a")
	_, early := in.mustBegin(t, "early")
	in.setLive(map[string]bool{"a": true, "b": true})
	in.setLive(map[string]bool{"a": true})
	if a.Err() != nil || early.Err() != nil {
		t.Error("a link was ended whose server is live, or not listed yet")
	}
	in.setLive(nil)
	if a.Err() == nil || early.Err() != nil {
		t.Error("only the link of the server that is gone must end")
	}
}

func TestInboundBound(t *testing.T) {
	in, _ := clocked()
	for i := range maxInbound {
		in.mustBegin(t, fmt.Sprint(i))
	}
	if _, err := in.begin("one more", func() {}); !errors.Is(err, errTooMany) {
		t.Errorf("one more: %v", err)
	}
	in.mustBegin(t, "0") // takes the place of another
}
