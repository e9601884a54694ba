package fastpush

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"testing"

	"switchboard/internal/await"
)

// shutdown shuts a testServer down as the broker does.
func (s *testServer) shutdown(ctx context.Context) error {
	s.Shutdown(ctx)
	return s.http.Shutdown(ctx)
}

// blockNextPush blocks the next push until release is called. entered is closed when it blocks.
func (s *testServer) blockNextPush(t *testing.T) (entered chan struct{}, release func()) {
	entered, released := make(chan struct{}), make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	t.Cleanup(release)
	var next atomic.Bool
	s.onPush = func() {
		if next.CompareAndSwap(false, true) {
			close(entered)
			<-released
		}
	}
	return entered, release
}

// TestShutdown checks that an idle connection closes, that a running call is answered, and that
// partial requests can still be completed.
func TestShutdown(t *testing.T) {
	s := start(t, nil)
	idle, busy, half, body := s.dialTakenOver(t), s.dialTakenOver(t), s.dialTakenOver(t), s.dialTakenOver(t)
	text := request("half of it")
	before := s.bytesRead.Load()
	half.send(text[:20])
	body.send(text[:len(text)-4])
	await.True(t, "both halves are read", func() bool { return s.bytesRead.Load() == before+20+int64(len(text)-4) })
	entered, release := s.blockNextPush(t)
	busy.send(request("under way"))
	<-entered
	done := make(chan error, 1)
	go func() { done <- s.shutdown(testContext(t)) }()
	idle.expectClosed()
	s.waitTakenOver(t, 1) // the partial requests went back to net/http
	late := s.dial(t)
	late.send(request("late"))
	late.expect("late") // by net/http
	half.send(text[20:])
	half.expect("half of it")
	body.send(text[len(text)-4:])
	body.expect("half of it")
	s.waitTakenOver(t, 1)
	release()
	if r := busy.expect("under way"); !r.Close {
		t.Error("the last answer does not say that the connection ends")
	}
	_ = busy.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	half.expectClosed()
	s.waitTakenOver(t, 0)
}

// TestShutdownPipelined checks that all pipelined requests are answered.
func TestShutdownPipelined(t *testing.T) {
	s := start(t, nil)
	c := s.dialTakenOver(t)
	entered, release := s.blockNextPush(t)
	c.send(request("one") + request("two"))
	<-entered
	s.drain((*conn).expireReadSoon)
	release()
	if r := c.expect("one"); r.Close {
		t.Error("the first answer says that the connection ends")
	}
	if r := c.expect("two"); !r.Close {
		t.Error("the last answer does not say that the connection ends")
	}
}

// TestShutdownUnderLoad checks that every push that was accepted is answered.
func TestShutdownUnderLoad(t *testing.T) {
	s := start(t, nil)
	var answered, announced atomic.Int64
	var clients sync.WaitGroup
	enough := make(chan struct{})
	for i := range 32 {
		c := s.dial(t)
		clients.Go(func() {
			for n := 0; ; n++ {
				text := fmt.Sprint(i, ".", n)
				if _, err := c.Write([]byte(request(text))); err != nil {
					break
				}
				r, body, err := c.answer()
				if err != nil {
					break
				}
				if want := fmt.Sprintf("/v1/push \"\" %s\n", text); body != want {
					t.Errorf("%q, want %q", body, want)
				}
				if answered.Add(1) == 5000 {
					close(enough)
				}
				if r.Close {
					announced.Add(1)
					break
				}
			}
			_ = c.Close()
		})
	}
	<-enough
	if err := s.shutdown(testContext(t)); err != nil {
		t.Error(err)
	}
	clients.Wait()
	if got := s.pushes.Load(); got != answered.Load() {
		t.Errorf("%d pushes were accepted, %d answered", got, answered.Load())
	}
	t.Logf("%d answers, %d announced the end of the connection", answered.Load(), announced.Load())
}

// TestClose checks that Close closes a connection whose call does not end.
func TestClose(t *testing.T) {
	s := start(t, nil)
	c := s.dialTakenOver(t)
	entered, release := s.blockNextPush(t)
	c.send(request("blocked"))
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Shutdown(ctx)
	}()
	c.expectClosed()
	release()
	<-done
	s.waitTakenOver(t, 0)
}

// TestShutdownTooLate checks that a request that arrives after the last answer is not accepted, and
// that the client still receives that answer.
func TestShutdownTooLate(t *testing.T) {
	s := start(t, nil)
	c := s.dialTakenOver(t)
	entered, release := s.blockNextPush(t)
	c.send(request("last"))
	<-entered
	s.drain((*conn).expireReadSoon)
	c.send(request("too late"))
	release()
	c.expect("last")
	if err := c.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(c.r); len(text) > 0 || err != nil { // a reset is an error
		t.Errorf("%q, %v", text, err)
	}
	if n := s.pushes.Load(); n != 2 {
		t.Errorf("%d pushes were accepted", n)
	}
}
