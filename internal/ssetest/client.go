package ssetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"time"
)

// Client keeps a stream open as EventSource does: when the stream ends, it connects again after the
// retry delay, with the last id. After an answer other than an event stream it gives up.
type Client struct {
	// URL returns the URL of the next request.
	URL func() string
	// HTTP makes the requests. Nil means http.DefaultClient.
	HTTP *http.Client
	// OnOpen is called when a stream begins, if it is not nil.
	OnOpen func(resumed bool)
	// OnEvent is called for each event, not for comments. If it returns an error, the client closes
	// the stream and connects again after the retry delay.
	OnEvent func(Event) error
	// OnEnd is called when a stream has ended and when a request has failed, if it is not nil.
	OnEnd func(error)
	// Retry is the retry delay until a stream sets it. Zero means one second.
	Retry time.Duration
	// LastID is the last id. Empty means that the first stream does not resume.
	LastID string
}

// ErrStopped is returned after an answer with status 204, which tells a client not to come back.
var ErrStopped = errors.New("the server answered 204 No Content")

// refusedError is an answer that is not an event stream.
type refusedError struct{ status, contentType string }

func (e *refusedError) Error() string {
	return fmt.Sprintf("the answer has status %q and type %q", e.status, e.contentType)
}

// Run keeps a stream open until ctx ends, and then returns nil. It returns ErrStopped or another
// error if the client must not connect again.
func (c *Client) Run(ctx context.Context) error {
	for {
		err := c.stream(ctx)
		_, refused := errors.AsType[*refusedError](err)
		switch {
		case ctx.Err() != nil:
			return nil
		case refused || errors.Is(err, ErrStopped):
			return err
		case c.OnEnd != nil:
			c.OnEnd(err)
		}
		select {
		case <-time.After(cmp.Or(c.Retry, time.Second)):
		case <-ctx.Done():
			return nil
		}
	}
}

// stream makes one request and reads its stream. It always returns an error.
func (c *Client) stream(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.URL(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "text/event-stream")
	req.Header.Set("Cache-Control", "no-store")
	if c.LastID != "" {
		req.Header.Set("Last-Event-ID", c.LastID)
	}
	resp, err := cmp.Or(c.HTTP, http.DefaultClient).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	contentType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	switch {
	case resp.StatusCode == http.StatusNoContent:
		return ErrStopped
	case resp.StatusCode != http.StatusOK || contentType != "text/event-stream":
		return &refusedError{resp.Status, contentType}
	}
	if c.OnOpen != nil {
		c.OnOpen(c.LastID != "")
	}
	r := NewReader(resp.Body, c.LastID)
	for {
		e, err := r.Next()
		if e.Retry > 0 {
			c.Retry = time.Duration(e.Retry) * time.Millisecond
		}
		if err != nil {
			return err
		}
		c.LastID = e.ID
		if e.Comment {
			continue
		}
		if err := c.OnEvent(e); err != nil {
			return err
		}
	}
}
