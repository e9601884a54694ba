package peer

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
)

const (
	callTimeout  = 5 * time.Second
	maxCallBody  = 1 << 20
	maxErrorText = 1 << 10
)

// ErrUnknownServer is returned for a call to a server that is not among the live ones, or
// that is this one.
var ErrUnknownServer = errors.New("peer: no such live server")

var errTooLarge = fmt.Errorf("the answer has more than %d bytes", maxCallBody)

// HandleCall answers the calls of one name, one path segment. The result of f is sent as JSON, and the
// text of its error to the caller. It must be called before the Handler serves.
func (l *Links) HandleCall(name string, f func(ctx context.Context, body json.RawMessage) (any, error)) {
	l.calls[name] = f
}

// Call asks a live server, sending in and storing the answer in out, unless that is nil. An
// error says what the other server said, if it did; it is ErrUnknownServer when the server is not live.
func (l *Links) Call(ctx context.Context, server, name string, in, out any) error {
	if err := l.call(ctx, server, name, in, out); err != nil {
		return fmt.Errorf("call %s of server %s: %w", name, server, err)
	}
	return nil
}

func (l *Links) call(ctx context.Context, server, name string, in, out any) error {
	k := l.link(server)
	if k == nil {
		return ErrUnknownServer
	}
	body, err := json.Marshal(in)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	address := url.URL{Scheme: l.scheme("http"), Host: k.host, Path: "/peer/call/" + name,
		RawQuery: url.Values{"to": {server}}.Encode()}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address.String(), bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/json")
	l.authorize(req.Header)
	resp, err := l.client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorText))
		return fmt.Errorf("%s: %s", resp.Status, strings.TrimSpace(string(text)))
	}
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxCallBody+1))
	switch {
	case err != nil:
		return err
	case len(answer) > maxCallBody:
		return errTooLarge
	case out == nil:
		return nil
	}
	return json.Unmarshal(answer, out)
}

func (l *Links) serveCall(w http.ResponseWriter, r *http.Request) {
	f := l.calls[r.PathValue("name")]
	if f == nil {
		http.Error(w, "no such call", http.StatusNotFound)
		return
	}
	// A web page can send a POST anywhere, but not with this type unless it is allowed to.
	if t, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type")); t != "application/json" {
		http.Error(w, "the body must be application/json", http.StatusUnsupportedMediaType)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxCallBody))
	if err != nil {
		status := http.StatusBadRequest
		if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
			status = http.StatusRequestEntityTooLarge
		}
		http.Error(w, err.Error(), status)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), callTimeout)
	defer cancel()
	answer, err := answerOf(f(ctx, body))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.Write(answer)
}

func answerOf(v any, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	answer, err := json.Marshal(v)
	if err == nil && len(answer) > maxCallBody {
		err = errTooLarge
	}
	return answer, err
}
