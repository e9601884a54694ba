package peer

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
)

const (
	maxID = 200 // bytes of a server's id
	// hangUpAfter is how long a link may be silent before it is closed: its sender is gone without
	// a word, or will dial again.
	hangUpAfter = 10 * time.Second
)

// Handler serves the links and calls of other servers, below /peer/.
func (l *Links) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /peer/link", l.serveLink)
	mux.HandleFunc("POST /peer/call/{name}", l.serveCall)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := l.opts.Check(bearer(r)); err != nil {
			http.Error(w, "the secret of the peer links does not fit", http.StatusUnauthorized)
			return
		}
		// Who was started at the address of another must not be taken for it.
		if to := r.URL.Query().Get("to"); to != "" && to != l.opts.Self() {
			http.Error(w, "another server is at this address now", http.StatusMisdirectedRequest)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

func bearer(r *http.Request) string {
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return secret
}

// authorize is the other end of bearer.
func (l *Links) authorize(h http.Header) {
	if l.opts.Secret != "" {
		h.Set("Authorization", "Bearer "+l.opts.Secret)
	}
}

func (l *Links) serveLink(w http.ResponseWriter, r *http.Request) {
	from := r.URL.Query().Get("from")
	if from == "" || len(from) > maxID {
		http.Error(w, "from must be a server id of 1 to 200 bytes", http.StatusBadRequest)
		return
	}
	conn, err := websocket.Accept(w, r, nil)
	if err != nil {
		return // the answer is written
	}
	defer conn.CloseNow()
	log := l.opts.Logger.With().Str("from", from).Logger()
	ctx, stop := context.WithCancel(r.Context())
	defer stop()
	s, err := l.in.begin(from, stop)
	if err != nil {
		log.Warn().Err(err).Msg("peer link refused")
		return
	}
	log.Debug().Msg("peer link begins")
	err = l.listen(ctx, conn, s)
	l.in.end(from, s)
	if errors.Is(err, errMalformed) {
		log.Warn().Err(err).Msg("peer link closed")
	} else {
		log.Debug().Err(err).Msg("peer link ended")
	}
}

// listen reads batches until the link ends.
func (l *Links) listen(ctx context.Context, conn *websocket.Conn, s *source) error {
	silence := time.AfterFunc(hangUpAfter, s.stop)
	defer silence.Stop()
	conn.SetReadLimit(maxBatch)
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
		if kind != websocket.MessageBinary {
			return errMalformed
		}
		number, decoded, err := decodeBatch(buf.Bytes(), hints[:0])
		if err != nil {
			return err
		}
		silence.Reset(hangUpAfter)
		l.in.batch(s, number, len(decoded))
		l.handle(decoded)
		l.opts.Metrics.Received(len(decoded))
		clear(decoded)
		if hints = decoded; cap(hints) > keepQueue {
			hints = nil
		}
	}
}

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
