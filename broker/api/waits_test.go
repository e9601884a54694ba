package api

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// log is a Queue with one channel, and a Watch of it.
type log struct {
	Queue
	delay   time.Duration // of a read
	mu      sync.Mutex    // guards the fields below
	last    int64
	reads   int
	changed chan struct{}
}

// ReadChannel implements Queue.
func (l *log) ReadChannel(_ context.Context, _ string, after int64, _ int) (queue.Page, error) {
	time.Sleep(l.delay)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.reads++
	p := queue.Page{Last: l.last, Complete: true}
	if l.last > after {
		p.Messages = []queue.Message{{ID: l.last, Data: []byte("1")}}
	}
	return p, nil
}

// append stores a message.
func (l *log) append() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	close(l.changed)
	l.changed = make(chan struct{})
}

// Last implements Watch.
func (l *log) Last() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last
}

// Changed implements Watch.
func (l *log) Changed(last int64) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.last != last {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return l.changed
}

// Close implements Watch.
func (l *log) Close() {}

// waitingAPI returns an API over l. The API key is the header itself.
func waitingAPI(l *log, ending <-chan struct{}) *API {
	return New(Options{
		Authorize:  func(string, string) (*limit.SharedBucket, error) { return nil, nil },
		Key:        func(authorization string) Key { return Key{ID: authorization} },
		Queue:      l,
		Watch:      func(context.Context, string) (Watch, error) { return l, nil },
		Namespaces: func() *namespace.Set { return namespace.Open() },
		Ending:     ending, WriteTimeout: 2 * time.Second,
	})
}

// pipeListener accepts connections that its dial makes.
type pipeListener struct {
	conns chan net.Conn
	done  chan struct{}
}

func (l pipeListener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}
func (l pipeListener) Close() error   { close(l.done); return nil }
func (l pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// TestWaitOutlivesDeadlines: the deadlines of the http.Server do not end a call that waits, and the
// answer comes with the next message, or when the wait ends.
func TestWaitOutlivesDeadlines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &log{last: 7, changed: make(chan struct{})}
		listener := pipeListener{make(chan net.Conn), make(chan struct{})}
		server := http.Server{Handler: waitingAPI(l, nil), ReadTimeout: time.Second, WriteTimeout: time.Second}
		go func() { _ = server.Serve(listener) }()
		client := http.Client{Transport: &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) {
			mine, theirs := net.Pipe()
			listener.conns <- theirs
			return mine, nil
		}}}
		defer client.CloseIdleConnections()
		defer server.Close()
		get := func() string {
			resp, err := client.Get("http://broker/v1/channels/news/history?after=7&wait=30")
			if err != nil {
				t.Error(err)
				return ""
			}
			defer resp.Body.Close()
			text, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Error(err)
			}
			return string(text)
		}
		begin := time.Now()
		if got := get(); got != `{"channel":"news","messages":[],"more":false,"recovered":true,"id":7}`+"\n" || time.Since(begin) != 30*time.Second {
			t.Errorf("after %v: %s", time.Since(begin), got)
		}
		if l.reads != 0 {
			t.Errorf("%d reads of the store while it waits", l.reads)
		}
		answer := make(chan string)
		go func() { answer <- get() }()
		synctest.Wait()
		time.Sleep(20 * time.Second)
		l.append()
		if got := <-answer; !strings.Contains(got, `"messages":[{"id":8,"data":1}]`) {
			t.Errorf("after a message: %s", got)
		}
	})
}

// TestSharedRead: all calls that wait for a message share the read of it.
func TestSharedRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &log{last: 7, changed: make(chan struct{}), delay: time.Millisecond}
		a := waitingAPI(l, nil)
		var calls sync.WaitGroup
		for range 100 {
			calls.Go(func() {
				timer := time.NewTimer(maxWait * time.Second)
				defer timer.Stop()
				if page, err := a.readChannel(t.Context(), "news", messageQuery{7, 10, wait{timeout: timer.C}}); err != nil || len(page.Messages) != 1 {
					t.Errorf("%v, %v", page, err)
				}
			})
		}
		synctest.Wait()
		l.append()
		calls.Wait()
		if l.reads != 1 {
			t.Errorf("%d reads for 100 calls", l.reads)
		}
	})
}

// TestWaitsAreBounded: calls above the limit of a key, and of the process, are refused.
func TestWaitsAreBounded(t *testing.T) {
	var w waits
	var leave []func()
	enter := func(key string) *wire.Error {
		done, err := w.enter(key)
		if err == nil {
			leave = append(leave, done)
		}
		refusal, _ := errors.AsType[*wire.Error](err)
		return refusal
	}
	for key := range maxWaits / maxKeyWaits {
		for range maxKeyWaits {
			if err := enter(fmt.Sprint(key)); err != nil {
				t.Fatal(err)
			}
		}
		if err := enter(fmt.Sprint(key)); err == nil || err.Code != wire.RateLimited {
			t.Errorf("a call above the limit of the key: %v", err)
		}
	}
	if err := enter("another"); err == nil || err.Code != wire.RateLimited {
		t.Errorf("a call above the limit of the server: %v", err)
	}
	leave[0]()
	leave = leave[1:]
	if err := enter("another"); err != nil {
		t.Errorf("after another call has ended: %v", err)
	}
	for _, f := range leave {
		f()
	}
	if w.total != 0 || len(w.byKey) != 0 {
		t.Errorf("at the end %d calls of %d keys", w.total, len(w.byKey))
	}
}

// TestWaitWhileEnding: a server that shuts down answers the calls that wait, and refuses others.
func TestWaitWhileEnding(t *testing.T) {
	ending := make(chan struct{})
	a := waitingAPI(&log{last: 7, changed: make(chan struct{})}, ending)
	close(ending)
	w := &recorder{header: http.Header{}}
	r, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, "/v1/channels/news/history?after=7&wait=30", nil)
	a.ServeHTTP(w, r)
	if w.status != http.StatusServiceUnavailable || w.header.Get("Retry-After") == "" {
		t.Errorf("a new call: %d %v", w.status, w.header)
	}
	page, err := a.readChannel(t.Context(), "news", messageQuery{7, 10, wait{timeout: make(chan time.Time), ending: ending}})
	if err != nil || len(page.Messages) != 0 {
		t.Errorf("a call that waits: %v, %v", page, err)
	}
}

// recorder is a ResponseWriter.
type recorder struct {
	header http.Header
	status int
}

func (r *recorder) Header() http.Header         { return r.header }
func (r *recorder) Write(p []byte) (int, error) { return len(p), nil }
func (r *recorder) WriteHeader(status int)      { r.status = status }
