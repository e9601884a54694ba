package queue

import (
	"fmt"
	"testing"
	"time"
)

// lostOffset is added to the last id. The sum is an id that the store does not know, like that of a
// message that a failover lost.
const lostOffset = 1000

func testConfirmChannel(t *testing.T, open opener) {
	f := open(t, Options{ChannelCap: 5})
	f.setServers(t, "news", "b1")
	ids := push(t, f, "news", 7)
	for _, id := range ids { // the first two are trimmed, which is no loss
		if m := must(f.ConfirmChannel(t.Context(), "news", id))(t); m != nil {
			t.Fatalf("%d is not lost; got %+v", id, m)
		}
	}
	last := ids[6]
	lost := last + lostOffset
	m := must(f.ConfirmChannel(t.Context(), "news", lost))(t)
	if m == nil || m.ID <= lost || m.Prev != last || string(m.Data) != fmt.Sprintf("!%d-%d", last, lost) ||
		len(m.Servers) != 1 || m.Servers[0] != "b1" {
		t.Fatalf("got %+v for %d, which was lost after %d", m, lost, last)
	}
	for _, id := range []int64{lost, lost - 1} {
		if again := must(f.ConfirmChannel(t.Context(), "news", id))(t); again != nil {
			t.Errorf("reported twice: %+v", again)
		}
	}
	more := push(t, f, "news", 1)
	if more[0] <= m.ID {
		t.Errorf("id %d after the marker's %d", more[0], m.ID)
	}
	p := must(f.ReadChannel(t.Context(), "news", last, 10))(t)
	wantIDs(t, "after the last held id", p, []int64{m.ID, more[0]})
	equal(t, "last marker", p.LastMarker, m.ID)
	equal(t, "complete", p.Complete, true)
	after, to, is := Loss(p.Messages[0].Data)
	if !is || after != last || to != lost {
		t.Errorf("the marker says %d, %d, %v", after, to, is)
	}
	// A marker is trimmed like a message.
	push(t, f, "news", 5)
	p = must(f.ReadChannel(t.Context(), "news", last, 10))(t)
	equal(t, "complete after the marker is trimmed", p.Complete, false)
}

// testConfirmEarlierLoss checks that a message is reported lost if the store has only the marker of
// a later failover. The marker of its own loss may have been lost with that failover, or another
// server may have been faster.
func testConfirmEarlierLoss(t *testing.T, open opener) {
	f := open(t, Options{})
	first := push(t, f, "news", 1)[0]
	f.advance(t, time.Second)
	later := push(t, f, "news", 1)[0]
	lost, latest := first+1, later+lostOffset
	must(f.ConfirmChannel(t.Context(), "news", latest))(t)
	m := must(f.ConfirmChannel(t.Context(), "news", lost))(t)
	if m == nil || string(m.Data) != fmt.Sprintf("!%d-%d", first, lost) {
		t.Fatalf("got %+v for %d, which was lost between %d and %d", m, lost, first, later)
	}
	for _, id := range []int64{latest, latest - 1, lost} {
		if again := must(f.ConfirmChannel(t.Context(), "news", id))(t); again != nil {
			t.Errorf("the loss of %d is reported twice: %+v", id, again)
		}
	}
}

func testConfirmChannelOfEmptyStore(t *testing.T, open opener) {
	f := open(t, Options{})
	id := push(t, f, "other", 1)[0] + 1
	m := must(f.ConfirmChannel(t.Context(), "news", id))(t)
	if m == nil || m.Prev != 0 || string(m.Data) != fmt.Sprintf("!0-%d", id) || len(m.Servers) != 0 {
		t.Fatalf("got %+v", m)
	}
	wantIDs(t, "from the beginning", must(f.ReadChannel(t.Context(), "news", 0, 10))(t), []int64{m.ID})
	if m := must(f.ConfirmChannel(t.Context(), "old", id-8*time.Hour.Milliseconds()*idsPerMS))(t); m != nil {
		t.Errorf("a message older than the TTLs is reported lost: %+v", m)
	}
}

func testConfirmExpiredChannel(t *testing.T, open opener) {
	f := open(t, Options{})
	ids := push(t, f, "news", 1)
	f.expire(t, f.opts.ChannelTTL, f.keys.channel("news"))
	if m := must(f.ConfirmChannel(t.Context(), "news", ids[0]))(t); m != nil {
		t.Errorf("an expired message is reported lost: %+v", m)
	}
}

func testConfirmClient(t *testing.T, open opener) {
	f := open(t, Options{ClientCap: 100})
	generation := bound(t, f, "phone")
	ids := send(t, f, "phone", 103)
	must(f.Ack(t.Context(), "phone", generation, ids[4]))(t)
	for _, id := range ids { // dropped by the cap, acknowledged, held
		if m := must(f.ConfirmClient(t.Context(), "phone", id))(t); m != nil {
			t.Fatalf("%d is not lost; got %+v", id, m)
		}
	}
	last := ids[102]
	lost := last + lostOffset
	m := must(f.ConfirmClient(t.Context(), "phone", lost))(t)
	if m == nil || m.ID <= lost || m.Prev != last || string(m.Data) != fmt.Sprintf("!%d-%d", last, lost) ||
		len(m.Servers) != 1 {
		t.Fatalf("got %+v for %d, which was lost after %d", m, lost, last)
	}
	for _, id := range []int64{lost, lost - 1} {
		if again := must(f.ConfirmClient(t.Context(), "phone", id))(t); again != nil {
			t.Errorf("reported twice: %+v", again)
		}
	}
	more := send(t, f, "phone", 1)
	must(f.Ack(t.Context(), "phone", generation, ids[90]))(t)
	p := must(f.Window(t.Context(), "phone", generation, ids[101], 10))(t)
	wantIDs(t, "after ids[101]", p, []int64{last, m.ID, more[0]})
	equal(t, "removed, with the marker", must(f.Ack(t.Context(), "phone", generation, m.ID))(t), 13)
}

// testConfirmForgottenClient confirms a message in a store that restarted empty.
func testConfirmForgottenClient(t *testing.T, open opener) {
	f := open(t, Options{})
	m := must(f.ConfirmClient(t.Context(), "phone", lostOffset))(t)
	if m == nil || len(m.Servers) != 0 || string(m.Data) != fmt.Sprintf("!0-%d", lostOffset) {
		t.Fatalf("got %+v", m)
	}
	generation := bound(t, f, "phone")
	wantIDs(t, "window", must(f.Window(t.Context(), "phone", generation, 0, 10))(t), []int64{m.ID})
}

func testConfirmExpiredClient(t *testing.T, open opener) {
	f := open(t, Options{})
	ids := send(t, f, "phone", 2)
	f.expire(t, f.opts.ClientTTL, f.keys.list("phone"))
	for _, id := range ids {
		if m := must(f.ConfirmClient(t.Context(), "phone", id))(t); m != nil {
			t.Errorf("an expired message is reported lost: %+v", m)
		}
	}
}

func TestLoss(t *testing.T) {
	for data, want := range map[string]bool{
		"!0-1": true, "!5-9007199254740991": true,
		"": false, "!": false, "!1": false, "!1-": false, "!-1": false, "!1-1": false, "!2-1": false,
		"!-1-2": false, "!a-2": false, "!1-9007199254740992": false, `"!1-2"`: false, "{}": false,
	} {
		if _, _, got := Loss([]byte(data)); got != want {
			t.Errorf("%q: %v", data, got)
		}
	}
	after, to, _ := Loss(lossMarker(7, 9))
	equal(t, "after", after, 7)
	equal(t, "to", to, 9)
}
