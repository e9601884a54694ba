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

// shutdown ends a site as the broker does.
func (s *site) shutdown(ctx context.Context) error {
	s.Shutdown(ctx)
	return s.http.Shutdown(ctx)
}

// hold keeps the next push, when it is entered, until it is released.
func (s *site) hold(t *testing.T) (entered chan struct{}, release func()) {
	entered, released := make(chan struct{}), make(chan struct{})
	release = sync.OnceFunc(func() { close(released) })
	t.Cleanup(release)
	var next atomic.Bool
	s.during = func() {
		if next.CompareAndSwap(false, true) {
			close(entered)
			<-released
		}
	}
	return entered, release
}

// TestShutdown: an idle connection ends, a call under way is answered, and half a request has its time.
func TestShutdown(t *testing.T) {
	s := start(t, nil)
	idle, busy, half, body := s.takenOver(t), s.takenOver(t), s.takenOver(t), s.takenOver(t)
	text := request("half of it")
	before := s.read.Load()
	half.send(text[:20])
	body.send(text[:len(text)-4])
	await.True(t, "both halves are read", func() bool { return s.read.Load() == before+20+int64(len(text)-4) })
	entered, release := s.hold(t)
	busy.send(request("under way"))
	<-entered
	done := make(chan error, 1)
	go func() { done <- s.shutdown(within(t)) }()
	idle.ends()
	s.count(t, 1) // the halves are back
	late := s.dial(t)
	late.send(request("late"))
	late.expect("late") // by net/http
	half.send(text[20:])
	half.expect("half of it")
	body.send(text[len(text)-4:])
	body.expect("half of it")
	s.count(t, 1)
	release()
	if r := busy.expect("under way"); !r.Close {
		t.Error("the last answer does not say that the connection ends")
	}
	_ = busy.Close()
	if err := <-done; err != nil {
		t.Error(err)
	}
	half.ends()
	s.count(t, 0)
}

// TestShutdownPipelined: what was sent with the last request is answered as well.
func TestShutdownPipelined(t *testing.T) {
	s := start(t, nil)
	l := s.takenOver(t)
	entered, release := s.hold(t)
	l.send(request("one") + request("two"))
	<-entered
	s.drain((*conn).lastCall)
	release()
	if r := l.expect("one"); r.Close {
		t.Error("the first answer says that the connection ends")
	}
	if r := l.expect("two"); !r.Close {
		t.Error("the last answer does not say that the connection ends")
	}
}

// TestShutdownUnderLoad: every push that was acted upon is answered.
func TestShutdownUnderLoad(t *testing.T) {
	s := start(t, nil)
	var answered, said atomic.Int64
	var clients sync.WaitGroup
	enough := make(chan struct{})
	for i := range 32 {
		l := s.dial(t)
		clients.Go(func() {
			for n := 0; ; n++ {
				text := fmt.Sprint(i, ".", n)
				if _, err := l.Write([]byte(request(text))); err != nil {
					break
				}
				r, body, err := l.answer()
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
					said.Add(1)
					break
				}
			}
			_ = l.Close()
		})
	}
	<-enough
	if err := s.shutdown(within(t)); err != nil {
		t.Error(err)
	}
	clients.Wait()
	if got := s.pushes.Load(); got != answered.Load() {
		t.Errorf("%d pushes were acted upon, %d answered", got, answered.Load())
	}
	t.Logf("%d answers, %d said that it was the last", answered.Load(), said.Load())
}

// TestClose: what does not end by itself is cut.
func TestClose(t *testing.T) {
	s := start(t, nil)
	l := s.takenOver(t)
	entered, release := s.hold(t)
	l.send(request("for ever"))
	<-entered
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Shutdown(ctx)
	}()
	l.ends()
	release()
	<-done
	s.count(t, 0)
}

// TestShutdownTooLate: a request that comes behind the last answer is not acted upon, and does not take the answer away.
func TestShutdownTooLate(t *testing.T) {
	s := start(t, nil)
	l := s.takenOver(t)
	entered, release := s.hold(t)
	l.send(request("last"))
	<-entered
	s.drain((*conn).lastCall)
	l.send(request("too late"))
	release()
	l.expect("last")
	if err := l.Conn.(interface{ CloseWrite() error }).CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if text, err := io.ReadAll(l.r); len(text) > 0 || err != nil { // a reset is an error
		t.Errorf("%q, %v", text, err)
	}
	if n := s.pushes.Load(); n != 2 {
		t.Errorf("%d pushes were acted upon", n)
	}
}
