package peer

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"
)

// newTestInbound returns an inbound without links, and its clock.
func newTestInbound() (*inbound, *time.Time) {
	in, now := newInbound(), time.Unix(1e9, 0)
	in.now = func() time.Time { return now }
	return in, &now
}

func (in *inbound) mustBegin(t *testing.T, from string) (*inboundLink, context.Context) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	k, err := in.begin(from, stop)
	if err != nil {
		t.Fatal(err)
	}
	return k, ctx
}

func TestLostByNumber(t *testing.T) {
	in, now := newTestInbound()
	in.setLive(map[string]bool{"a": true})
	k, _ := in.mustBegin(t, "a")
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
		{"heartbeat after the gap", 14, 0, false},
		{"backwards", 2, 1, true},
		{"heartbeat after it", 3, 0, false},
	} {
		*now = now.Add(time.Millisecond)
		in.countBatch(k, step.number, step.n)
		if got := in.lost(); got != step.lost {
			t.Errorf("%s: lost is %v", step.name, got)
		}
		if in.lost() {
			t.Errorf("%s: reported twice", step.name)
		}
	}
	in.end("a", k)
	if !in.lost() {
		t.Error("the end of a link is not reported as a loss")
	}
}

func TestLostByFirstNumberZero(t *testing.T) {
	in, _ := newTestInbound()
	k, _ := in.mustBegin(t, "a")
	// Number 0 does not prove that no hints were dropped before.
	if in.countBatch(k, 0, 0); !in.lost() {
		t.Error("the first batch of a link is not reported as a loss")
	}
}

func TestLostBySilence(t *testing.T) {
	for name, c := range map[string]struct {
		hints      int // in the last batch
		maxSilence time.Duration
	}{
		"active": {1, time.Second},
		"idle":   {0, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) { lostBySilence(t, c.hints, c.maxSilence) })
	}
}

func lostBySilence(t *testing.T, hints int, maxSilence time.Duration) {
	in, now := newTestInbound()
	if in.lost() {
		t.Error("without other servers, a loss is reported")
	}
	in.setLive(map[string]bool{"a": true})
	k, _ := in.mustBegin(t, "a")
	in.countBatch(k, 0, hints)
	in.lost()
	for _, step := range []struct {
		name  string
		after time.Duration
		lost  bool
	}{
		{"silent as long as allowed", maxSilence, false},
		{"silent for longer", time.Millisecond, true},
		{"just reported", 999 * time.Millisecond, false},
		{"a second later", time.Millisecond, true},
		{"just reported again", 500 * time.Millisecond, false},
		{"another second later", 500 * time.Millisecond, true},
	} {
		*now = now.Add(step.after)
		if got := in.lost(); got != step.lost {
			t.Errorf("%s: lost is %v", step.name, got)
		}
	}
	*now = now.Add(time.Minute)
	if in.countBatch(k, uint64(hints), 0); in.lost() {
		t.Error("a batch arrived and none is missing, but a loss is reported")
	}
	in.setLive(map[string]bool{"a": true, "b": true})
	if !in.lost() {
		t.Error("a live server without a link is not reported")
	}
	*now = now.Add(time.Minute)
	in.countBatch(k, uint64(hints), 0)
	if in.setLive(map[string]bool{"a": true}); in.lost() {
		t.Error("a server that is no longer live is reported")
	}
}

// TestMaxSilence checks that quick heartbeats are expected for 5 s after a hint, also a dropped
// one.
func TestMaxSilence(t *testing.T) {
	in, now := newTestInbound()
	k, _ := in.mustBegin(t, "a")
	for _, step := range []struct {
		name   string
		after  time.Duration
		number uint64
		n      int
		want   time.Duration
	}{
		{"the first batch, whatever its number", 0, 3, 0, idleSilentAfter},
		{"a hint", time.Second, 3, 1, silentAfter},
		{"heartbeat", 4 * time.Second, 4, 0, silentAfter},
		{"perhaps the last quick heartbeat", 500 * time.Millisecond, 4, 0, idleSilentAfter},
		{"idle", 2 * time.Second, 4, 0, idleSilentAfter},
		{"one is missing", 2 * time.Second, 5, 0, silentAfter},
	} {
		*now = now.Add(step.after)
		if in.countBatch(k, step.number, step.n); k.maxSilence() != step.want {
			t.Errorf("%s: it may be silent for %v, want %v", step.name, k.maxSilence(), step.want)
		}
	}
}

func TestInboundNewerWins(t *testing.T) {
	in, _ := newTestInbound()
	older, olderCtx := in.mustBegin(t, "a")
	newer, newerCtx := in.mustBegin(t, "a")
	if olderCtx.Err() == nil || newerCtx.Err() != nil {
		t.Fatal("the older link was not ended, or the newer one was")
	}
	if in.end("a", older); in.links["a"] != newer {
		t.Error("the end of the older link removed the newer one")
	}
	if in.end("a", newer); len(in.links) != 0 {
		t.Error("an ended link is not removed")
	}
}

func TestInboundSetLive(t *testing.T) {
	in, _ := newTestInbound()
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
	in, _ := newTestInbound()
	for i := range maxInbound {
		in.mustBegin(t, fmt.Sprint(i))
	}
	if _, err := in.begin("one more", func() {}); !errors.Is(err, errTooMany) {
		t.Errorf("one more: %v", err)
	}
	in.mustBegin(t, "0") // replaces an older link
}
