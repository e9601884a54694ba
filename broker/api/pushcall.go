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

// The paths that Push answers.
const (
	PathPush  = "/v1/push"
	PathBatch = "/v1/push/batch"
)

// Push answers a POST to PathPush or PathBatch that did not come through net/http. authorization is
// the value of the header Authorization, and text is the body. Push does not keep text. The
// answer's body is appended to dst, or newly allocated.
func (a *API) Push(path, authorization string, text, dst []byte) Answer {
	rate, err := a.Authorize(authorization, ScopePush)
	if err != nil {
		a.rejected(err, authorization, "")
		return a.errorAnswer(err)
	}
	if path == PathBatch {
		return a.batch(context.Background(), body{text: text}, dst, rate)
	}
	return a.push(context.Background(), body{text: text}, dst, rate)
}

// maxPooled is the largest buffer that goes back to bufferPool, in bytes.
const maxPooled = 64 << 10

// buffers are the buffers of a push over net/http.
type buffers struct {
	body   bytes.Buffer
	answer []byte
}

var bufferPool = sync.Pool{New: func() any { return new(buffers) }}

func (b *buffers) free() {
	if b.body.Cap() <= maxPooled && cap(b.answer) <= maxPooled {
		bufferPool.Put(b)
	}
}

// pushFunc answers a push. The answer's body is appended to dst. rate is the rate limit of the API
// key; nil means none.
type pushFunc func(ctx context.Context, b body, dst []byte, rate *limit.SharedBucket) Answer

// servePush answers a push over net/http.
func (a api) servePush(w http.ResponseWriter, r *http.Request, push pushFunc, rate *limit.SharedBucket) {
	b := bufferPool.Get().(*buffers)
	defer b.free()
	b.body.Reset()
	_, err := b.body.ReadFrom(r.Body)
	// WithoutCancel: hints must follow a stored message even if the backend closes its connection.
	answer := push(context.WithoutCancel(r.Context()), body{b.body.Bytes(), err}, b.answer[:0], rate)
	b.answer = answer.Body
	// After a read error the deadline stays, since net/http may read the rest of the body before it
	// writes.
	if err == nil && a.WriteTimeout > 0 {
		// SetWriteDeadline fails only if w does not come from an http.Server.
		_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(a.WriteTimeout))
	}
	if answer.Status == http.StatusOK && a.AfterPush != nil {
		w.Header().Set("Content-Length", strconv.Itoa(len(answer.Body))) // so that the answer is complete before AfterPush
		answer.writeTo(w)
		a.AfterPush(w, r)
		return
	}
	answer.writeTo(w)
}
