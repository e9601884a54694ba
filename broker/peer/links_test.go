package peer

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/coder/websocket"

	"switchboard/registry"
)

// linkedPair returns two servers with links in both directions.
func linkedPair(t *testing.T, change ...func(*Options)) (a, b *node) {
	a, b = newNode(t, "a", change...).start(), newNode(t, "b", change...).start()
	a.setServers(b)
	b.setServers(a)
	if d := append(b.awaitLink(a), a.awaitLink(b)...); len(d) != 0 {
		t.Errorf("new links without a missed hint are doubted: %v", d)
	}
	return a, b
}

func TestHintsInOrder(t *testing.T) {
	a, b := linkedPair(t, withSecret("between us"))
	const n = 5000 // fits the queue, so none is dropped however slow the link is
	for i := range int64(n) {
		a.Send("b", Hint{Channel, "room", i, i - 1, []byte(fmt.Sprint("m", i))})
	}
	for i := range int64(n) {
		h := <-b.hints
		if h.Kind != Channel || h.Name != "room" || h.ID != i || h.Prev != i-1 || string(h.Data) != fmt.Sprint("m", i) {
			t.Fatalf("hint %d is %+v", i, h)
		}
	}
	if a.missed.Load() != 0 {
		t.Errorf("missed %d", a.missed.Load())
	}
	if d, _ := b.Doubts(); len(d) != 0 {
		t.Errorf("all hints arrived, but %v is doubted", d)
	}
}

func TestFlushInBatches(t *testing.T) {
	a := newNode(t, "a")
	defer a.http.Close()
	k := newLink(a.Links, "b", "")
	hints := make([]Hint, 1000)
	for i := range hints {
		hints[i] = Hint{Kind: Channel, Name: "room", ID: int64(i), Data: make([]byte, 200)}
	}
	next, batches := uint64(7), 0
	_, err := k.flush(nil, next, hints, ending{goodbye: true}, func(b []byte) error {
		number, got, end, err := decodeBatch(b, nil, supported)
		if err != nil || number != next || len(got) == 0 {
			t.Errorf("%d hints from %d, want from %d: %v", len(got), number, next, err)
		}
		next += uint64(len(got))
		if last := next == 1007; end.goodbye != last {
			t.Errorf("the batch up to %d ends with %+v", next, end)
		}
		batches++
		return nil
	})
	if err != nil || next != 1007 || batches != 4 || a.sent.Load() != 1000 {
		t.Errorf("%d batches up to %d, %d sent: %v", batches, next, a.sent.Load(), err)
	}

	broken := errors.New("broken")
	batches = 0
	_, err = k.flush(nil, 0, hints, ending{}, func(b []byte) error {
		if batches++; batches == 3 {
			return broken
		}
		return nil
	})
	if sent, missed := a.sent.Load()-1000, a.missed.Load(); !errors.Is(err, broken) || sent+missed != 1000 || sent == 0 || missed == 0 {
		t.Errorf("%d sent, %d missed: %v", sent, missed, err)
	}
}

func TestDropIsReported(t *testing.T) {
	a, b := newNode(t, "a", func(o *Options) { o.Fault = Drop }).start(), newNode(t, "b").start()
	a.setServers(b)
	a.awaitLog("peer link is up")
	a.Send("b", Hint{Kind: Channel, Name: "room", ID: 1})
	if a.sent.Load() != 1 || a.missed.Load() != 0 {
		t.Errorf("%d sent, %d missed", a.sent.Load(), a.missed.Load())
	}
	b.awaitLoss()
	if len(b.hints) > 0 {
		t.Errorf("%v arrived", <-b.hints)
	}
	for len(b.logs) > 0 {
		if line := <-b.logs; line.Message == "peer link ended" {
			t.Error("a new link reported the loss, not the next heartbeat")
		}
	}
}

func TestCutAndReconnect(t *testing.T) {
	a, b := linkedPair(t)
	b.cuts.cut() // the link from a to b
	b.awaitLog("peer link ended")
	if d, _ := b.Doubts(); !slices.Equal(d, []string{"a"}) {
		t.Errorf("a link was cut, and %v is doubted", d)
	}
	a.awaitLog("peer link is down")
	a.Send("b", Hint{Kind: Channel, Name: "room", ID: 1})
	if d := b.awaitLink(a); !slices.Equal(d, []string{"a"}) {
		t.Errorf("a hint was dropped before the link, and %v is doubted", d)
	}
	a.Send("b", Hint{Kind: Channel, Name: "room", ID: 2})
	if h := <-b.hints; h.ID != 2 {
		t.Errorf("got %v", h)
	}
	if a.missed.Load() != 1 {
		t.Errorf("missed %d", a.missed.Load())
	}
}

func TestServerStops(t *testing.T) {
	a, b := linkedPair(t)
	b.stop()
	a.awaitLog("peer link ended")
	if d, _ := a.Doubts(); !slices.Equal(d, []string{"b"}) {
		t.Errorf("a server stopped without a goodbye, and %v is doubted", d)
	}
	if line := a.awaitLog("peer link is down"); line.Level != "warn" || line.Peer != "b" {
		t.Errorf("logged %+v", line)
	}
}

func TestSetServersRemoves(t *testing.T) {
	a, b := linkedPair(t)
	toB := a.link("b")
	a.setServers()
	<-toB.done
	b.awaitLog("peer link ended") // the one from a
	if !a.Unlisted("b") {
		t.Error("the registry has removed a server, without a doubt")
	}
	a.awaitLog("peer link ended") // the one from b
	a.Send("b", Hint{Kind: Channel, Name: "room"})
	if a.missed.Load() != 1 {
		t.Error("a hint to an unknown server is not counted as missed")
	}
	a.SetServers([]registry.Server{{ID: "a", Host: a.host}, {ID: "", Host: b.host}})
	if out := a.links(); len(out) != 0 {
		t.Errorf("links to %v", out)
	}
}

func TestNewOwnID(t *testing.T) {
	a, b := linkedPair(t)
	a.id.Store("a2")
	for b.awaitLog("peer link begins").From != "a2" { // the log may still contain the link from a
	}
}

func TestOtherServerAtAddress(t *testing.T) {
	a, b := newNode(t, "a").start(), newNode(t, "b").start()
	a.SetServers([]registry.Server{{ID: "older", Host: b.host}})
	if line := a.awaitLog("peer link is down"); !strings.Contains(line.Error, "421") {
		t.Errorf("logged %+v", line)
	}
}

func dialRaw(t *testing.T, n *node, query string) (*websocket.Conn, error) {
	conn, _, err := websocket.Dial(t.Context(), "ws://"+n.host+"/peer/link"+query, &websocket.DialOptions{HTTPClient: n.client})
	if err == nil {
		t.Cleanup(func() { conn.CloseNow() })
	}
	return conn, err
}

func TestLinkRefusals(t *testing.T) {
	b := newNode(t, "b").start()
	for _, query := range []string{"", "?from=", "?from=" + strings.Repeat("x", maxID+1)} {
		if _, err := dialRaw(t, b, query); err == nil || !strings.Contains(err.Error(), "400") {
			t.Errorf("%.10q: %v", query, err)
		}
	}
	for name, send := range map[string]func(*websocket.Conn) error{
		"an ending without features": func(c *websocket.Conn) error {
			return c.Write(t.Context(), websocket.MessageBinary, []byte{0, 0, flagGoodbye})
		},
		"text": func(c *websocket.Conn) error {
			return c.Write(t.Context(), websocket.MessageText, []byte{0})
		},
		"a call without an id": func(c *websocket.Conn) error {
			return c.Write(t.Context(), websocket.MessageText, []byte(`{"call":"greet"}`))
		},
	} {
		conn, err := dialRaw(t, b, "?from=stranger")
		if err != nil {
			t.Fatal(err)
		}
		if err := send(conn); err != nil {
			t.Fatal(err)
		}
		if line := b.awaitLog("peer link closed"); line.Level != "warn" || line.From != "stranger" {
			t.Errorf("%s: logged %+v", name, line)
		}
	}
	conn, err := dialRaw(t, b, "?from=stranger")
	if err != nil {
		t.Fatal(err)
	}
	conn.Write(t.Context(), websocket.MessageBinary, bytes.Repeat([]byte{0}, maxMessage+1)) // may fail: the link is closed during the write
	if line := b.awaitLog("peer link ended"); !strings.Contains(line.Error, "limit") {
		t.Errorf("too large: logged %+v", line)
	}
}

func TestStoppedRefusesLinks(t *testing.T) {
	b := newNode(t, "b").start()
	b.stop()
	if _, err := dialRaw(t, b, "?from=stranger"); err != nil {
		t.Fatal(err)
	}
	if line := b.awaitLog("peer link refused"); line.Error != errClosed.Error() {
		t.Errorf("logged %+v", line)
	}
}
