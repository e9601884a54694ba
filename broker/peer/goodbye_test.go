package peer

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/coder/websocket"
)

// TestGoodbye checks that the planned end of a server is no loss: all hints arrive before it, and
// neither the end of the links, nor the silence, nor the end of the lease is doubted.
func TestGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := virtualPair(t)
		const n = 3000 // several batches
		a.send("b", n)
		a.CloseInbound()
		a.Goodbye(t.Context())
		if b.received.Load() != n || a.missed.Load() != 0 {
			t.Errorf("%d hints, want %d; %d missed", b.received.Load(), n, a.missed.Load())
		}
		b.expectDoubts("after the goodbye", time.Second)
		a.stop()
		a.net.kill("a", errRefused)
		b.expectDoubts("its lease lasts", 10*time.Second)
		b.list()
		b.expectDoubts("its lease has ended", 3*time.Second)
		if b.Unlisted("a") {
			t.Error("it is no longer listed, and doubted")
		}
		a.send("b", 1)
		if a.missed.Load() != 1 {
			t.Errorf("%d hints are missed after the goodbye, want 1", a.missed.Load())
		}
	})
}

// TestGoodbyeWithMissingHints checks that a goodbye has the number of all hints: those that were
// dropped are missing.
func TestGoodbyeWithMissingHints(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := virtualPair(t)
		a.send("b", 1)
		synctest.Wait()
		a.send("b", 2)
		a.Send("b", Hint{Kind: Channel, Name: strings.Repeat("n", maxName+1)})
		a.Goodbye(t.Context())
		if b.received.Load() != 3 || a.missed.Load() != 1 {
			t.Errorf("%d hints are received and %d missed, want 3 and 1", b.received.Load(), a.missed.Load())
		}
		if d, _ := b.Doubts(); !slices.Equal(d, []string{"a"}) {
			t.Errorf("after the goodbye %v is doubted", d)
		}
		a.stop()
		b.expectDoubts("its lease lasts", 10*time.Second)
		b.list()
		if b.Unlisted("a") {
			t.Error("it is no longer listed, and doubted again")
		}
	})
}

// TestGoodbyeDials checks that a server whose link is down gets the goodbye, too.
func TestGoodbyeDials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := newVirtualNet()
		a := n.start(t, "a", nil)
		a.list("b")
		<-time.After(time.Minute) // the delay between dials is at its maximum
		a.send("b", 2)
		b := n.start(t, "b", nil)
		b.list("a")
		began := time.Now()
		a.Goodbye(t.Context())
		if d, _ := b.Doubts(); time.Since(began) > 0 || !slices.Equal(d, []string{"a"}) {
			t.Errorf("after %v %v is doubted, want a: two hints were dropped", time.Since(began), d)
		}
		a.stop()
		b.expectDoubts("after the goodbye", 10*time.Second)
	})
}

// TestEndWithoutGoodbye checks that the end of a server without a goodbye is doubted, and that its
// queue is counted as missed.
func TestEndWithoutGoodbye(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a, b := virtualPair(t)
		a.stop()
		a.net.kill("a", errRefused)
		b.expectDoubts("its link ended", 4*time.Second, "a 0s", "a 1s", "a 3s")
		b.list()
		b.expectDoubts("its lease has ended", 3*time.Second)
		if !b.Unlisted("a") {
			t.Error("it is no longer listed, without a doubt")
		}
	})
}

// TestReturnAfterGoodbye checks that a goodbye holds only until the next link: whatever a server
// sends then is compared.
func TestReturnAfterGoodbye(t *testing.T) {
	in, _ := newTestInbound()
	in.setListed("a")
	k, _ := in.mustBegin(t, "a", supported)
	in.countBatch(k, 0, 4, ending{goodbye: true})
	if in.end(k); in.doubts() != nil {
		t.Error("a goodbye is doubted")
	}
	k, _ = in.mustBegin(t, "a", supported)
	if in.countBatch(k, 5, 0, ending{}); len(in.doubts()) != 1 {
		t.Error("a hint was addressed after the goodbye, without a doubt")
	}
	if in.end(k); len(in.doubts()) != 1 {
		t.Error("the next link ended without a goodbye, and without a doubt")
	}
}

// TestGoodbyeToStuckReceiver checks that a receiver that does not end the link, or reads nothing,
// delays the end only for a moment.
func TestGoodbyeToStuckReceiver(t *testing.T) {
	for name, c := range map[string]struct {
		reads bool
		took  time.Duration
	}{
		"reads everything": {true, goodbyeTimeout},
		"reads nothing":    {false, 3 * time.Second}, // the limit of the caller
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a, _ := virtualPair(t, func(http.Handler) http.Handler { return stuckReceiver(t, c.reads) })
				began := time.Now()
				ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
				defer cancel()
				a.Goodbye(ctx)
				a.stop()
				if took := time.Since(began); took != c.took {
					t.Errorf("the end took %v, want %v", took, c.took)
				}
			})
		})
	}
}

// stuckReceiver returns a handler of links that never ends one.
func stuckReceiver(t *testing.T, reads bool) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		supported.set(w.Header())
		conn, err := websocket.Accept(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.CloseNow()
		for reads {
			if _, _, err := conn.Read(t.Context()); err != nil {
				return
			}
		}
		<-t.Context().Done()
	})
}

// TestGoodbyeNumber checks the batches of a goodbye when hints were dropped after those in the
// queue: the first one is no goodbye, and the goodbye has the number of all hints.
func TestGoodbyeNumber(t *testing.T) {
	a := newNode(t, "a")
	defer a.http.Close()
	k := newLink(a.Links, "b", "")
	k.open()
	a.outboxes.get("b").add(Hint{Kind: Channel}, false)
	k.add(Hint{Kind: Channel, Name: strings.Repeat("n", maxName+1)}, false)
	ended := make(chan error, 1)
	ended <- errGoodbye
	var got []ending
	next := uint64(0)
	err := k.sayGoodbye(t.Context(), supported, func(b []byte) error {
		number, hints, end, err := decodeBatch(b, nil, supported)
		got, next = append(got, end), number+uint64(len(hints))
		return err
	}, ended)
	if err != errGoodbye || next != 2 || len(got) != 2 || got[0] != (ending{}) || got[1] != (ending{goodbye: true}) {
		t.Errorf("%v; the batches end with %+v, and the last number is %d, want 2", err, got, next)
	}
	if k.add(Hint{Kind: Channel}, false) {
		t.Error("queued after the goodbye")
	}
}
