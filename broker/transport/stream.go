package transport

import (
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"time"

	"switchboard/broker/dialect"
	"switchboard/broker/limit"
	"switchboard/internal/wire"
)

// ServeStream answers a GET request with a stream in the dialect Dialects.Response. The caller has
// checked the origin. The headers that the caller has set, such as those of CORS, are part of the
// response.
//
// In clear text over HTTP/1.1 the Poller takes the connection over, so that an idle stream has no
// goroutine and no buffer. Other streams keep their handler's goroutine.
func (w *Web) ServeStream(rw http.ResponseWriter, r *http.Request) {
	headers := rw.Header().Clone()
	delete(headers, "Connection")
	opening, err := w.dialects.Response.Open(dialect.Hello{
		URL: r.URL, Header: r.Header, Framing: dialect.Stream, Response: headers,
	})
	if err != nil {
		answerOpenError(rw, err)
		return
	}
	if r.Method == http.MethodHead {
		return
	}
	gated := gatedConnOf(r.Context())
	if gated != nil && gated.reserved {
		refuseStream(rw, opening, "no room for another connection", overloadedMS)
		return
	}
	from, refusal := w.limits.enterForwarded(r)
	if refusal != nil {
		refuseStream(rw, opening, refusal.Detail, refusal.Milliseconds())
		return
	}
	if w.handOverStream(rw, r, gated, from, opening) {
		return
	}
	defer w.limits.Addresses.Leave(from.slot)
	if gated != nil {
		gated.settle() // otherwise the Gate could close the connection to make room
	}
	if r.ProtoMajor > 1 { // a connection has many streams, and each counts
		own, refusal := w.enterStream(r, from.slot)
		if refusal != nil {
			refuseStream(rw, opening, refusal.Detail, refusal.Milliseconds())
			return
		}
		defer w.limits.Gate.Leave()
		defer w.limits.Addresses.Leave(own)
	}
	if !w.enter() {
		refuseStream(rw, opening, "the server is shutting down", overloadedMS)
		return
	}
	defer w.conns.Done()
	w.serveStream(rw, r, from, opening)
}

// enterStream takes a place in the Gate for a stream of an HTTP/2 connection, and counts the stream
// for the address of the peer. If forwarded is not 0, the stream already counts for the address
// that a proxy names, and only for that.
func (w *Web) enterStream(r *http.Request, forwarded limit.Slot) (limit.Slot, *limit.Refusal) {
	if !w.limits.Gate.Enter() {
		return 0, &limit.Refusal{Detail: "no room for another connection", Wait: overloadedMS * time.Millisecond}
	}
	if forwarded != 0 || w.limits.Addresses == nil {
		return 0, nil
	}
	peer, _ := netip.ParseAddrPort(r.RemoteAddr)
	slot, refusal := w.limits.Addresses.Enter(peer.Addr())
	if refusal != nil {
		w.limits.Gate.Leave()
	}
	return slot, refusal
}

// handOverStream gives the connection of a request to the Poller. Then the codec writes the whole
// response, with its head. It returns false and does nothing if the Poller cannot take the
// connection.
func (w *Web) handOverStream(
	rw http.ResponseWriter, r *http.Request, gated *gatedConn, from client, opening dialect.Opening,
) bool {
	if w.Poller == nil || gated == nil || r.ProtoMajor != 1 || !w.Poller.canAdopt(gated) {
		return false
	}
	conn, buffered, err := http.NewResponseController(rw).Hijack()
	if err != nil {
		return false
	}
	early, _ := buffered.Reader.Peek(buffered.Reader.Buffered())
	if err := w.Poller.adopt(gated, from, streaming, opening, early); err != nil {
		w.limits.Addresses.Leave(from.slot)
		_ = conn.Close()
	}
	return true
}

// answerOpenError answers a request with an error of Dialect.Open.
func answerOpenError(rw http.ResponseWriter, err error) {
	refusal, ok := errors.AsType[*dialect.Refusal](err)
	switch {
	case !ok:
		http.Error(rw, err.Error(), http.StatusBadRequest)
	case refusal.Status == http.StatusNoContent:
		rw.WriteHeader(refusal.Status)
	case refusal.JSON != nil:
		rw.Header().Set("Content-Type", "application/json")
		rw.WriteHeader(refusal.Status)
		_, _ = rw.Write(refusal.JSON)
	default:
		http.Error(rw, refusal.Text, refusal.Status)
	}
}

// refuseStream answers a request for which there is no room now. It sends a closing message with a
// retry delay. The status is 200, because EventSource gives up after any other.
func refuseStream(rw http.ResponseWriter, opening dialect.Opening, detail string, afterMS int64) {
	out, _ := opening.Encoding.AppendClosing(nil, wire.CloseOverloaded, detail, afterMS)
	w := responseBody{rw: rw}
	_ = w.write(out) // the client may be gone
}

// responseBody writes the output of a codec to a response of net/http. The output begins with the
// head of an HTTP/1.1 response.
type responseBody struct {
	rw    http.ResponseWriter
	begun bool
}

func (w *responseBody) write(b []byte) error {
	if !w.begun {
		w.begun = true
		head, body, ok := bytes.Cut(b, []byte("\r\n\r\n"))
		if !ok {
			return errors.New("the response has no head")
		}
		if err := w.writeHead(head); err != nil {
			return err
		}
		b = body
	}
	if len(b) == 0 {
		return nil
	}
	_, err := w.rw.Write(b)
	return err
}

func (w *responseBody) writeHead(head []byte) error {
	line, rest, _ := bytes.Cut(head, []byte("\r\n"))
	status := 0
	if _, err := fmt.Sscanf(string(line), "HTTP/1.1 %d", &status); err != nil {
		return err
	}
	for field := range bytes.SplitSeq(rest, []byte("\r\n")) {
		name, value, _ := bytes.Cut(field, []byte(": "))
		// net/http decides whether the connection stays open, and which headers repeat.
		if key := http.CanonicalHeaderKey(string(name)); key != "" && key != "Connection" {
			w.rw.Header().Set(key, string(value))
		}
	}
	w.rw.WriteHeader(status)
	return nil
}
