package snippets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"switchboard/internal/await"
	"switchboard/internal/testbed"
	"switchboard/internal/textconn"
)

// TestWire runs the exchanges of each page in order, with a broker of the page's own.
func TestWire(t *testing.T) {
	for _, page := range pages(t) {
		blocks := blocksOf(t, page)
		if !slices.ContainsFunc(blocks, func(b block) bool { return b.language == "wire" }) {
			continue
		}
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			e := newExchange(ctx, t, page)
			for _, b := range blocks {
				switch {
				case b.language == "wire":
					e.runBlock(ctx, b)
				case b.language == "json" && b.info == "log":
					e.logged(ctx, b)
				}
			}
		})
	}
}

// An exchange runs the blocks of one page.
type exchange struct {
	t         *testing.T
	shape     shape
	broker    *testbed.Process
	http, tcp string // addresses of the broker
	clients   map[string]textconn.Conn
	calls     map[string]chan received   // of those that wait for an answer, by caller
	reads     map[string]func() received // repeat the last call, if it was a GET, by caller
	posts     chan post                  // what the backend of the page has received
	post      post                       // the one that the page has shown last
}

// received is a request or an answer.
type received struct {
	kind   string // like "200", or "POST /path"
	header http.Header
	body   string
	err    error
}

// A post is a request of the broker to the backend of the page.
type post struct {
	received

	answer chan<- step
}

func (e *exchange) runBlock(ctx context.Context, b block) {
	e.t.Helper()
	steps, err := stepsOf(b)
	if err != nil {
		e.t.Fatal(err)
	}
	for _, s := range steps {
		if err := e.run(ctx, s); err != nil {
			e.t.Fatalf("%s:%d: %v", s.page, s.line, err)
		}
	}
}

func (e *exchange) run(ctx context.Context, s step) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	switch {
	case s.disconnects:
		e.clients[s.who].Close()
		delete(e.clients, s.who)
		return nil
	case s.sent && s.status != "":
		e.post.answer <- s
		return nil
	case s.sent:
		return e.send(ctx, s)
	case s.method != "":
		select {
		case e.post = <-e.posts:
			return e.check(s, e.post.received)
		case <-ctx.Done():
			return errors.New("the backend has received nothing")
		}
	case s.status != "":
		select {
		case answer := <-e.calls[s.who]:
			err := e.check(s, answer)
			if again := e.reads[s.who]; err != nil && again != nil {
				// Lists follow within about a second.
				err = await.Success(ctx, func() error { return e.check(s, again()) })
			}
			return err
		case <-ctx.Done():
			return errors.New("no answer; is there a call before it?")
		}
	}
	client := e.clients[s.who]
	if client == nil {
		return fmt.Errorf("%q is not connected", s.who)
	}
	message, err := client.Receive(ctx)
	return e.check(s, received{body: string(message), err: err})
}

// send sends a message or a request. A message connect opens a connection.
func (e *exchange) send(ctx context.Context, s step) error {
	text, err := e.shape.filled(s.text)
	if err != nil {
		return err
	}
	if s.method != "" {
		path, err := e.shape.filled(s.path)
		if err != nil {
			return err
		}
		answer := make(chan received, 1)
		e.calls[s.who] = answer
		call := func() received { return e.call(e.t.Context(), s, path, text) }
		go func() { answer <- call() }()
		if delete(e.reads, s.who); s.method == http.MethodGet {
			e.reads[s.who] = call
		}
		return nil
	}
	if strings.HasPrefix(text, `{"type":"connect"`) {
		client, err := textconn.DialTCP(ctx, net.Dialer{}, e.tcp)
		if err != nil {
			return err
		}
		e.t.Cleanup(client.Close)
		e.clients[s.who] = client
	}
	if e.clients[s.who] == nil {
		return fmt.Errorf("%q is not connected", s.who)
	}
	return e.clients[s.who].Send(ctx, text)
}

// call makes a request of the page.
func (e *exchange) call(ctx context.Context, s step, path, body string) received {
	request, err := http.NewRequestWithContext(ctx, s.method, "http://"+e.http+path, strings.NewReader(body))
	if err != nil {
		return received{err: err}
	}
	for _, line := range s.header {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return received{err: err}
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return received{fmt.Sprint(response.StatusCode), response.Header, string(text), err}
}

// receive is the backend of the page: it answers as the page shows.
func (e *exchange) receive(ctx context.Context, w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	answer := make(chan step, 1)
	select {
	case e.posts <- post{received{r.Method + " " + r.URL.Path, r.Header, string(body), err}, answer}:
	case <-ctx.Done():
		return
	}
	select {
	case s := <-answer:
		w.Header().Set("Content-Type", "application/json")
		status, _ := strconv.Atoi(s.status) // three digits
		w.WriteHeader(status)
		_, _ = io.WriteString(w, s.text)
	case <-ctx.Done():
	}
}

// check compares what was received with what the page shows.
func (e *exchange) check(s step, got received) error {
	if got.err != nil {
		return got.err
	}
	if want := strings.TrimSpace(s.method + " " + s.path + s.status); got.kind != want {
		return fmt.Errorf("received %s, the page shows %s\n%s", got.kind, want, got.body)
	}
	for _, line := range s.header {
		name, value, _ := strings.Cut(line, ": ")
		if real := got.header.Get(name); !matches(freeNumber.ReplaceAllString(value, "…"), real) {
			return fmt.Errorf("the header %s is %q, the page shows %q", name, real, value)
		}
	}
	if d := e.shape.compare(s.text, got.body); d != "" {
		return fmt.Errorf("%s\n%s", d, got.body)
	}
	return nil
}

// logged waits until the broker has logged the lines of a block.
func (e *exchange) logged(ctx context.Context, b block) {
	e.t.Helper()
	for shown := range strings.Lines(b.code) {
		err := await.Until(ctx, "the log line", func() bool {
			for line := range strings.Lines(e.broker.Tail(0)) {
				if make(shape).compare(shown, line) == "" {
					return true
				}
			}
			return false
		})
		if err != nil {
			e.t.Fatalf("%s:%d: %v %s\nthe log is\n%s", b.page, b.line, err, shown, e.broker.Tail(0))
		}
	}
}
