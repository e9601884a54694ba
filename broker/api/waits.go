package api

import (
	"cmp"
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// Limits of waiting calls. Each of them holds a connection and a goroutine.
const (
	maxWait     = 30 // seconds
	maxWaits    = 1024
	maxKeyWaits = 256 // of one API key
)

// waits counts the calls that wait.
type waits struct {
	mu    sync.Mutex // guards the fields below
	total int
	byKey map[string]int // by Key.ID; without zeros
}

// enter counts a waiting call. It returns an error if there are too many of them. Otherwise leave
// must be called once.
func (w *waits) enter(key string) (leave func(), err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case w.total >= maxWaits:
		return nil, wire.Errorf(wire.RateLimited, "%d calls wait on this server, which is the limit", w.total)
	case w.byKey[key] >= maxKeyWaits:
		return nil, wire.Errorf(wire.RateLimited, "%d calls of this API key wait on this server, which is the limit", w.byKey[key])
	}
	if w.byKey == nil {
		w.byKey = make(map[string]int)
	}
	w.total++
	w.byKey[key]++
	return func() { w.leave(key) }, nil
}

func (w *waits) leave(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.total--
	if w.byKey[key]--; w.byKey[key] == 0 {
		delete(w.byKey, key)
	}
}

// messageQuery is what a call asks for that reads messages.
type messageQuery struct {
	after int64
	limit int
	wait
}

// serveWait answers a call that reads messages, and may wait for one.
func (a api) serveWait(w http.ResponseWriter, r *http.Request, answer func(*http.Request, messageQuery) (any, error)) (any, error) {
	after, err := QueryInt(r, "after", 0, 0, state.MaxNumber)
	_, limit, limitErr := page(r, 1)
	if err := cmp.Or(err, limitErr); err != nil {
		return nil, err
	}
	wait, stop, err := a.startWait(w, r)
	if err != nil {
		return nil, err
	}
	defer stop()
	return answer(r, messageQuery{after, limit, wait})
}

// wait is how long a call waits for a message. The zero value does not wait.
type wait struct {
	timeout <-chan time.Time
	ending  <-chan struct{} // Options.Ending
}

// startWait returns the wait that a call asks for with ?wait=SECONDS. stop ends it.
func (a api) startWait(w http.ResponseWriter, r *http.Request) (_ wait, stop func(), err error) {
	seconds, err := QueryInt(r, "wait", 0, 0, maxWait)
	if err != nil || seconds == 0 {
		return wait{}, func() {}, err
	}
	select {
	case <-a.Ending:
		return wait{}, nil, wire.Errorf(wire.Unavailable, "this server shuts down; repeat the call")
	default:
	}
	leave, err := a.waits.enter(a.Key(r.Header.Get("Authorization")).ID)
	if err != nil {
		return wait{}, nil, err
	}
	d := time.Duration(seconds) * time.Second
	a.extendDeadline(w, d)
	timer := time.NewTimer(d)
	return wait{timer.C, a.Ending}, func() { timer.Stop(); leave() }, nil
}

// extendDeadline gives the call the time d more to write its answer. The deadline of the
// http.Server counts from the head of the request. The error is that of a ResponseWriter that does
// not come from an http.Server.
func (a api) extendDeadline(w http.ResponseWriter, d time.Duration) {
	var answered time.Time // none
	if a.WriteTimeout > 0 {
		answered = time.Now().Add(d + a.WriteTimeout)
	}
	_ = http.NewResponseController(w).SetWriteDeadline(answered)
}

// on waits until changed is closed or poll has a value. Either may be nil. It returns false if the
// call must be answered now. The error is that of ctx.
func (w wait) on(ctx context.Context, changed <-chan struct{}, poll <-chan time.Time) (again bool, err error) {
	if w.timeout == nil {
		return false, nil
	}
	select {
	case <-changed:
		return true, nil
	case <-poll:
		return true, nil
	case <-w.timeout:
		return false, nil
	case <-w.ending:
		return false, nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}

// pollInterval is the mean interval at which a waiting call reads a client's queue.
const pollInterval = time.Second

// nextPoll returns a time after about pollInterval, so that many calls do not read at once.
func nextPoll() <-chan time.Time { return time.After(pollInterval/2 + rand.N(pollInterval)) }
