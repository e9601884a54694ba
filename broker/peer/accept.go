package peer

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/coder/websocket"
)

const (
	maxID = 200 // the longest server id, in bytes
	// silenceTimeout is how long a link may be without a batch before it is closed. Its sender is
	// gone, or will dial again.
	silenceTimeout = 10 * time.Second
)

// Handler returns the handler of the links from other servers, under /peer/.
func (l *Links) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /peer/link", l.serveLink)
	return mux
}

func (l *Links) serveLink(w http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	from, to, self := query.Get("from"), query.Get("to"), l.opts.Self()
	switch {
	case from == "" || len(from) > maxID:
		http.Error(w, "from must be a server id of 1 to 200 bytes", http.StatusBadRequest)
		return
	case to != "" && to != self: // this server was started at the address of another one
		http.Error(w, "another server is at this address now", http.StatusMisdirectedRequest)
		return
	}
	link, refused := l.answerHello(r, from, w.Header())
	if refused != "" {
		l.opts.Refused(refused, r.RemoteAddr)
		http.Error(w, "this server is refused: "+refused, http.StatusUnauthorized)
		return
	}
	supported.set(w.Header())
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // Accept has written the answer
	}
	defer conn.CloseNow()
	if refused := l.checkProof(r.Context(), conn, link); refused != "" {
		l.opts.Refused(refused, r.RemoteAddr)
		_ = conn.Close(websocket.StatusPolicyViolation, "this server is refused")
		return
	}
	log := l.opts.Logger.With().Str("from", from).Logger()
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	k := &inboundLink{from: from, to: self, was: query.Get("was"), features: readFeatures(r.Header), stop: stop}
	if err := l.in.begin(k); err != nil {
		log.Warn().Err(err).Msg("peer link refused")
		return
	}
	log.Debug().Msg("peer link begins")
	err = l.listen(ctx, conn, k)
	l.in.end(k)
	if errors.Is(err, errMalformed) {
		log.Warn().Err(err).Msg("peer link closed")
	} else {
		log.Debug().Err(err).Msg("peer link ended")
	}
}

// listen reads batches and calls until the link ends or the sender says goodbye. Then it ends the
// running calls.
func (l *Links) listen(ctx context.Context, conn *websocket.Conn, k *inboundLink) error {
	calls := l.newCallee(ctx, conn)
	defer calls.close()
	silence := time.AfterFunc(silenceTimeout, k.stop)
	defer silence.Stop()
	conn.SetReadLimit(maxMessage)
	var buf bytes.Buffer
	var hints []Hint
	for {
		kind, r, err := conn.Reader(ctx)
		if err != nil {
			return err
		}
		buf.Reset()
		if _, err := buf.ReadFrom(r); err != nil {
			return err
		}
		if kind == websocket.MessageText {
			if err := calls.accept(buf.Bytes()); err != nil {
				return err
			}
			continue
		}
		number, decoded, end, err := decodeBatch(buf.Bytes(), hints[:0], k.features)
		if err != nil {
			return err
		}
		silence.Reset(silenceTimeout)
		l.in.countBatch(k, number, len(decoded), end)
		l.handle(decoded)
		l.opts.Metrics.Received(len(decoded))
		if end.goodbye {
			return errGoodbye
		}
		clear(decoded)
		if hints = decoded; cap(hints) > maxSpare {
			hints = nil
		}
	}
}

// handle passes hints on. With the fault Mangle it passes them on twice, in reverse order.
func (l *Links) handle(hints []Hint) {
	if l.opts.Fault == Mangle {
		for i := 2*len(hints) - 1; i >= 0; i-- {
			l.opts.Handle(hints[i%len(hints)])
		}
		return
	}
	for _, h := range hints {
		l.opts.Handle(h)
	}
}
