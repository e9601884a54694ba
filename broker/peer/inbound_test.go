package peer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"
)

// newTestInbound returns the inbound of the server self without links, and its clock.
func newTestInbound() (*inbound, *time.Time) {
	in, now := newInbound(func() string { return "self" }), time.Unix(1e9, 0)
	in.now = func() time.Time { return now }
	return in, &now
}

// setListed makes the servers live.
func (in *inbound) setListed(ids ...string) {
	live := make(map[string]bool)
	for _, id := range ids {
		live[id] = true
	}
	in.setLive(live)
}

// mustBegin begins a link to the server self.
func (in *inbound) mustBegin(t *testing.T, from string, f features, change ...func(*inboundLink)) (*inboundLink, context.Context) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	k := &inboundLink{from: from, to: "self", features: f, stop: stop}
	for _, c := range change {
		c(k)
	}
	if err := in.begin(k); err != nil {
		t.Fatal(err)
	}
	return k, ctx
}

func TestDoubtByNumber(t *testing.T) {
	for name, c := range map[string]struct {
		features features
		first    bool // whether a first batch with the expected number is doubted
	}{
		"with counts": {counts, false},
		"an older server, which counts only while it has a link": {0, true},
	} {
		t.Run(name, func(t *testing.T) { doubtByNumber(t, c.features, c.first) })
	}
}

func doubtByNumber(t *testing.T, f features, first bool) {
	in, now := newTestInbound()
	in.setListed("a")
	k, _ := in.mustBegin(t, "a", f)
	again := func() {
		in.end(k)
		if got := in.doubts(); !slices.Equal(got, []string{"a"}) {
			t.Errorf("a link ended without a goodbye, and %v is doubted", got)
		}
		k, _ = in.mustBegin(t, "a", f)
	}
	for _, step := range []struct {
		name    string
		newLink bool
		number  uint64
		n       int
		doubted bool
	}{
		{"first batch", false, 0, 2, first},
		{"next", false, 2, 0, false},
		{"heartbeat", false, 2, 0, false},
		{"hints", false, 2, 3, false},
		{"one is missing", false, 6, 1, true},
		{"heartbeat after the gap", false, 7, 0, false},
		{"new link", true, 7, 1, first},
		{"new link that missed a hint", true, 9, 0, true},
		{"heartbeat after it", false, 9, 0, false},
		{"backwards", false, 2, 1, true},
		{"heartbeat after it", false, 3, 0, false},
	} {
		if step.newLink {
			again()
		}
		*now = now.Add(time.Millisecond)
		in.countBatch(k, step.number, step.n, ending{})
		if got := len(in.doubts()) > 0; got != step.doubted {
			t.Errorf("%s: doubted is %v", step.name, got)
		}
		if len(in.doubts()) > 0 {
			t.Errorf("%s: reported twice", step.name)
		}
	}
}

// TestUncountedDrops checks that the number 0 of a first batch is a doubt if the server has heard
// of hints before, and that any other is one if it has not.
func TestUncountedDrops(t *testing.T) {
	in, _ := newTestInbound()
	k, _ := in.mustBegin(t, "a", counts)
	if in.countBatch(k, 3, 0, ending{}); len(in.doubts()) == 0 {
		t.Error("three hints were dropped before the first link, without a doubt")
	}
	in.end(k)
	in.doubts()
	k, _ = in.mustBegin(t, "a", counts)
	if in.countBatch(k, 0, 0, ending{}); len(in.doubts()) == 0 {
		t.Error("the count of a server began again, without a doubt")
	}
}

// TestUnlisted checks when a server that is no longer listed is doubted for the last time.
func TestUnlisted(t *testing.T) {
	for name, c := range map[string]struct {
		number           uint64 // of the only batch
		goodbye, doubted bool
	}{
		"nothing is missing":                   {0, true, false},
		"it has not said goodbye":              {0, false, true},
		"a hint before the goodbye is missing": {1, true, true},
	} {
		in, _ := newTestInbound()
		in.setListed("a")
		k, _ := in.mustBegin(t, "a", supported)
		in.countBatch(k, c.number, 1, ending{goodbye: c.goodbye})
		in.end(k)
		in.setListed()
		if got := in.unlisted("a"); got != c.doubted {
			t.Errorf("%s: doubted is %t", name, got)
		}
		if in.doubts() != nil {
			t.Errorf("%s: it is doubted once more", name)
		}
		if !in.unlisted("a") {
			t.Errorf("%s: an unknown server is not doubted", name)
		}
	}
}

func TestDoubtBySilence(t *testing.T) {
	for name, c := range map[string]struct {
		hints      int // in the last batch
		maxSilence time.Duration
	}{
		"active": {1, time.Second},
		"idle":   {0, 5 * time.Second},
	} {
		t.Run(name, func(t *testing.T) { doubtBySilence(t, c.hints, c.maxSilence) })
	}
}

func doubtBySilence(t *testing.T, hints int, maxSilence time.Duration) {
	in, now := newTestInbound()
	if in.doubts() != nil {
		t.Error("without other servers, there is a doubt")
	}
	in.setListed("a")
	k, _ := in.mustBegin(t, "a", counts)
	in.countBatch(k, 0, hints, ending{})
	for _, step := range []struct {
		name    string
		after   time.Duration
		doubted bool
	}{
		{"silent as long as allowed", maxSilence, false},
		{"silent for longer", time.Millisecond, true},
		{"just reported", 999 * time.Millisecond, false},
		{"a second later", time.Millisecond, true},
		{"just reported again", 500 * time.Millisecond, false},
		{"another second later", 500 * time.Millisecond, true},
	} {
		*now = now.Add(step.after)
		if got := len(in.doubts()) > 0; got != step.doubted {
			t.Errorf("%s: doubted is %v", step.name, got)
		}
	}
	*now = now.Add(time.Minute)
	if in.countBatch(k, uint64(hints), 0, ending{}); in.doubts() != nil {
		t.Error("a batch arrived and none is missing, but there is a doubt")
	}
	in.setListed("a", "b")
	if in.doubts() != nil {
		t.Error("a new server is doubted before it could make a link")
	}
	*now = now.Add(silentAfter + 1)
	if got := in.doubts(); !slices.Equal(got, []string{"b"}) {
		t.Errorf("a live server has no link, and %v is doubted", got)
	}
	*now = now.Add(time.Minute)
	in.countBatch(k, uint64(hints), 0, ending{})
	if in.setListed("a"); in.doubts() != nil {
		t.Error("a server that is no longer live is doubted")
	}
}

// TestDoubtOfOwnID checks that the numbers of hints to an earlier id of this server say nothing
// about those to its present id.
func TestDoubtOfOwnID(t *testing.T) {
	in, now := newTestInbound()
	self := "self"
	in.self = func() string { return self }
	in.setListed("a")
	k, _ := in.mustBegin(t, "a", counts)
	in.countBatch(k, 0, 5, ending{})
	self = "new"
	*now = now.Add(silentAfter + 1)
	in.countBatch(k, 5, 0, ending{})
	if len(in.doubts()) == 0 {
		t.Error("only the former id hears the server, without a doubt")
	}
	to := func(k *inboundLink) { k.to = "new" }
	k, _ = in.mustBegin(t, "a", counts, to)
	if in.countBatch(k, 5, 0, ending{}); len(in.doubts()) == 0 {
		t.Error("five hints to the new id were dropped, without a doubt")
	}
	k, _ = in.mustBegin(t, "a", counts, to)
	if in.countBatch(k, 5, 0, ending{}); len(in.doubts()) != 0 {
		t.Error("no hint was dropped, and there is a doubt")
	}
}

// TestNewIDContinues checks that a server with a new id continues the numbers of the former one.
func TestNewIDContinues(t *testing.T) {
	for name, c := range map[string]struct {
		was     string
		number  uint64
		doubted []string // after the first batch under the new id
	}{
		"nothing is missing": {"a", 7, nil},
		"a hint is missing":  {"a", 8, []string{"a2"}},
		"another former id":  {"b", 7, []string{"a2"}},
	} {
		t.Run(name, func(t *testing.T) {
			in, now := newTestInbound()
			in.setListed("a")
			k, _ := in.mustBegin(t, "a", counts)
			in.countBatch(k, 0, 7, ending{})
			in.end(k)
			if got := in.doubts(); !slices.Equal(got, []string{"a"}) {
				t.Errorf("the link under the former id ended, and %v is doubted", got)
			}
			in.setListed("a", "a2")
			k, _ = in.mustBegin(t, "a2", counts, func(k *inboundLink) { k.was = c.was })
			in.countBatch(k, c.number, 0, ending{})
			if got := in.doubts(); !slices.Equal(got, c.doubted) {
				t.Errorf("%v is doubted, want %v", got, c.doubted)
			}
			if c.was != "a" {
				return
			}
			*now = now.Add(3 * time.Second)
			in.countBatch(k, c.number, 0, ending{})
			if got := in.doubts(); got != nil {
				t.Errorf("%v is doubted: the former id is silent, but the new one is not", got)
			}
			if !in.unlisted("a") {
				t.Error("a janitor has removed what the former id held, without a doubt")
			}
		})
	}
}

// TestMaxSilence checks that quick heartbeats are expected for 5 s after a hint, also a dropped
// one.
func TestMaxSilence(t *testing.T) {
	in, now := newTestInbound()
	k, _ := in.mustBegin(t, "a", counts)
	if got := k.sender.maxSilence(); got != silentAfter {
		t.Errorf("a new link may be silent for %v", got)
	}
	for _, step := range []struct {
		name   string
		after  time.Duration
		number uint64
		n      int
		want   time.Duration
	}{
		{"the first batch, without any hint so far", 0, 0, 0, idleSilentAfter},
		{"a hint", time.Second, 0, 1, silentAfter},
		{"heartbeat", 4 * time.Second, 1, 0, silentAfter},
		{"perhaps the last quick heartbeat", 500 * time.Millisecond, 1, 0, idleSilentAfter},
		{"idle", 2 * time.Second, 1, 0, idleSilentAfter},
		{"one is missing", 2 * time.Second, 2, 0, silentAfter},
	} {
		*now = now.Add(step.after)
		if in.countBatch(k, step.number, step.n, ending{}); k.sender.maxSilence() != step.want {
			t.Errorf("%s: it may be silent for %v, want %v", step.name, k.sender.maxSilence(), step.want)
		}
	}
	*now = now.Add(10 * time.Second)
	k, _ = in.mustBegin(t, "a", counts)
	if in.countBatch(k, 2, 0, ending{}); k.sender.maxSilence() != silentAfter {
		t.Error("a sender with hints before its link sends quick heartbeats, but they are not expected")
	}
}

func TestInboundNewerWins(t *testing.T) {
	for name, f := range map[string]features{"with counts": counts, "an older server": 0} {
		t.Run(name, func(t *testing.T) {
			in, _ := newTestInbound()
			older, olderCtx := in.mustBegin(t, "a", f)
			in.countBatch(older, 0, 4, ending{})
			in.doubts()
			newer, newerCtx := in.mustBegin(t, "a", f)
			if olderCtx.Err() == nil || newerCtx.Err() != nil {
				t.Fatal("the older link was not ended, or the newer one was")
			}
			in.countBatch(newer, 4, 0, ending{})
			in.doubts()
			in.countBatch(older, 4, 1, ending{}) // read before the newer link began
			in.end(older)
			if in.senders["a"].link != newer || in.links != 1 {
				t.Error("the end of the older link removed the newer one")
			}
			if got := len(in.doubts()) > 0; got != (f == 0) {
				t.Errorf("the older link ended: doubted is %t", got)
			}
			in.countBatch(newer, 4, 0, ending{})
			if in.doubts() != nil {
				t.Error("a batch of the older link changed the numbers of the newer one")
			}
			if in.end(newer); in.links != 0 || in.senders["a"].link != nil {
				t.Error("an ended link is not removed")
			}
		})
	}
}

// TestUnlistedEndsLink checks that a link ends when its server is no longer listed, and not with
// its lease.
func TestUnlistedEndsLink(t *testing.T) {
	in, _ := newTestInbound()
	k, a := in.mustBegin(t, "a", counts)
	_, early := in.mustBegin(t, "early", counts)
	in.setListed("a", "b")
	in.setListed("b")
	in.countBatch(k, 0, 3, ending{})
	if a.Err() != nil || early.Err() != nil || in.doubts() != nil {
		t.Error("a link was ended or doubted whose server has no lease, or is not listed yet")
	}
	in.setListed("a")
	if in.unlisted("a"); a.Err() != nil || in.senders["a"].next != 3 {
		t.Error("a server that has its lease back was forgotten")
	}
	in.setListed()
	if in.unlisted("a"); a.Err() == nil || early.Err() != nil {
		t.Error("only the link of the server that is gone must end")
	}
	if in.end(k); in.links != 1 || in.doubts() != nil {
		t.Errorf("%d links after the end, want 1 without doubts", in.links)
	}
}

// TestSendersAreForgotten checks that a server without a lease and a link is doubted for the last
// time after a minute, if no janitor removes it, and then forgotten.
func TestSendersAreForgotten(t *testing.T) {
	in, now := newTestInbound()
	in.setListed("a", "left")
	for _, id := range []string{"a", "left"} {
		k, _ := in.mustBegin(t, id, counts)
		in.countBatch(k, 0, 1, ending{goodbye: id == "left"})
		in.end(k)
	}
	if got := in.doubts(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("after the end of both links %v is doubted", got)
	}
	in.setListed()
	if *now = now.Add(rememberSender); in.doubts() != nil || len(in.senders) != 2 {
		t.Error("forgotten too early")
	}
	*now = now.Add(1)
	if got := in.doubts(); !slices.Equal(got, []string{"a"}) {
		t.Errorf("at last %v is doubted", got)
	}
	if len(in.senders) != 0 || in.doubts() != nil {
		t.Errorf("%d servers are remembered", len(in.senders))
	}
}

func TestInboundBound(t *testing.T) {
	in, now := newTestInbound()
	var links []*inboundLink
	for i := range maxInbound {
		k, _ := in.mustBegin(t, fmt.Sprint(i), counts)
		links = append(links, k)
	}
	refused := func(from string) {
		t.Helper()
		if err := in.begin(&inboundLink{from: from, to: "self", stop: func() {}}); !errors.Is(err, errTooMany) {
			t.Errorf("one more: %v", err)
		}
	}
	refused("one more")
	links[0], _ = in.mustBegin(t, "0", counts) // replaces an older link
	for i := range maxInbound {
		in.end(links[i])
		in.mustBegin(t, fmt.Sprint(maxInbound+i), counts)
	}
	in.end(in.senders[fmt.Sprint(maxInbound)].link)
	refused("one more") // too many are remembered
	in.mustBegin(t, "0", counts)
	*now = now.Add(rememberSender + 1)
	in.doubts()
	if len(in.senders) != maxInbound {
		t.Errorf("%d servers are remembered", len(in.senders))
	}
}

// doubts returns the servers of takeDoubts.
func (in *inbound) doubts() []string {
	servers, _ := in.takeDoubts()
	return servers
}
