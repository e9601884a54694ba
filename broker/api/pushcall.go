package api

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"switchboard/broker/limit"
)

// A push comes in by net/http, or by whoever reads HTTP in its place and calls Push. Both end in api.push and api.batch.

// The calls that Push answers.
const (
	PathPush  = "/v1/push"
	PathBatch = "/v1/push/batch"
)

// Push answers POST path, one of the above, given the value of the header Authorization and the body, of which nothing
// is kept. The answer's body is behind dst, or newly made.
func (a *API) Push(path, authorization string, text, dst []byte) Answer {
	by, err := a.Authorize(authorization, scopePush)
	if err != nil {
		a.rejected(err, authorization, "")
		return a.failed(err)
	}
	if path == PathBatch {
		return a.batch(context.Background(), body{text: text}, dst, by)
	}
	return a.push(context.Background(), body{text: text}, dst, by)
}

// maxKept is the largest buffer that is kept for the next call.
const maxKept = 64 << 10

// buffers are those of a call over net/http.
type buffers struct {
	body   bytes.Buffer
	answer []byte
}

var spare = sync.Pool{New: func() any { return new(buffers) }}

func (b *buffers) free() {
	if b.body.Cap() <= maxKept && cap(b.answer) <= maxKept {
		spare.Put(b)
	}
}

// pushCall answers a push; the last is what its API key may push.
type pushCall func(context.Context, body, []byte, *limit.SharedBucket) Answer

// over answers a call over net/http.
func (a api) over(w http.ResponseWriter, r *http.Request, call pushCall, by *limit.SharedBucket) {
	b := spare.Get().(*buffers)
	defer b.free()
	b.body.Reset()
	_, err := b.body.ReadFrom(r.Body)
	// What was stored must be hinted: so the call goes on when the caller has gone away.
	answer := call(context.WithoutCancel(r.Context()), body{b.body.Bytes(), err}, b.answer[:0], by)
	b.answer = answer.Body
	if err == nil && a.WriteTimeout > 0 { // else net/http may read more of the body before it answers
		// An error means that w is not a server's.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(a.WriteTimeout))
	}
	if answer.Status == http.StatusOK && a.AfterPush != nil {
		w.Header().Set("Content-Length", strconv.Itoa(len(answer.Body))) // so that the answer is complete
		answer.send(w)
		a.AfterPush(w, r)
		return
	}
	answer.send(w)
}
