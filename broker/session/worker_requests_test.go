package session_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/queue"
)

// requestQueue is a queue that records requests and answers them with err.
type requestQueue struct {
	Queue
	got []queue.Request
	err error
}

func (q *requestQueue) PushRequest(_ context.Context, r queue.Request) error {
	q.got = append(q.got, r)
	return q.err
}

// newRequester returns a harness whose client has connected with the given message.
func newRequester(t *testing.T, o session.Options, connect string) (*harness, *requestQueue) {
	var requests *requestQueue
	if o.Requests.Queues == 0 {
		o.Requests.Queues = 16
	}
	h := newUnconnected(t, o, func(q Queue) Queue { requests = &requestQueue{Queue: q}; return requests }, nil)
	h.send("%s", connect)
	if e := h.received(); len(e) != 1 || e[0].Type != "connected" {
		t.Fatalf("connect is answered with %+v", e)
	}
	return h, requests
}

const (
	asAlice   = `{"type":"connect","client":"phone","user":"alice"}`
	anonymous = `{"type":"connect","client":"phone"}`
	aRequest  = `{"type":"request","ref":1,"data":1}`
)

func TestRequestAccess(t *testing.T) {
	for _, c := range []struct {
		from    namespace.Access
		connect string
		want    string // in the error, empty for none
	}{
		{0, asAlice, "no client may"},
		{0, anonymous, "no client may"},
		{namespace.Users, asAlice, ""},
		{namespace.Users, anonymous, "open to users, and the client has no user"},
		{namespace.Anyone, asAlice, ""},
		{namespace.Anyone, anonymous, ""},
	} {
		t.Run(fmt.Sprintf("%s %s", c.from, c.connect), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o, refused := countRefusals(session.Options{Requests: session.Requests{From: c.from}})
				h, requests := newRequester(t, o, c.connect)
				h.send(aRequest)
				e := h.received()
				switch {
				case len(e) != 1:
					t.Fatalf("answered with %+v", e)
				case c.want == "" && (e[0].Type != "accepted" || len(requests.got) != 1):
					t.Errorf("answered with %+v, stored %v", e[0], requests.got)
				case c.want != "" && (e[0].Code != "forbidden" || !strings.Contains(e[0].Message, c.want) || refused["requests"] != 1 || len(requests.got) > 0):
					t.Errorf("answered with %+v, counted %v, stored %v", e[0], refused, requests.got)
				}
			})
		})
	}
}

// TestRequestList checks that the user decides on the list and the share, and that a client without
// a user cannot choose them.
func TestRequestList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		requestOf := func(connect string) queue.Request {
			h, requests := newRequester(t, session.Options{Requests: session.Requests{From: namespace.Anyone}}, connect)
			h.send(aRequest)
			if len(requests.got) != 1 {
				t.Fatalf("%s: stored %v", connect, requests.got)
			}
			return requests.got[0]
		}
		lists := map[int]bool{}
		for i := range 40 {
			user := fmt.Sprint("user-", i)
			one := requestOf(fmt.Sprintf(`{"type":"connect","client":"phone-%d","user":%q}`, i, user))
			other := requestOf(fmt.Sprintf(`{"type":"connect","client":"laptop-%d","user":%q}`, i, user))
			if one.List != other.List || one.Sender != "user "+user || other.Sender != one.Sender {
				t.Errorf("%+v and %+v of the same user", one, other)
			}
			lists[one.List] = true
			if r := requestOf(fmt.Sprintf(`{"type":"connect","client":"phone-%d"}`, i)); r.List != 0 || r.Sender != "address 192.0.2.1" {
				t.Errorf("%+v of a client without a user", r)
			}
		}
		if len(lists) < 8 {
			t.Errorf("40 users have %d lists", len(lists))
		}
	})
}

func TestRequestRate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		o, refused := countRefusals(session.Options{Requests: session.Requests{From: namespace.Users, Rate: 2}})
		h, requests := newRequester(t, o, asAlice)
		for i := range 9 {
			h.send(aRequest)
			e := h.received()
			if len(e) != 1 || (e[0].Code == "rate_limited") != (i == 8) ||
				i == 8 && !strings.Contains(e[0].Message, "more than 2 requests a second (requests.rate); try again in 500 ms") {
				t.Fatalf("request %d: %+v", i, e)
			}
		}
		if refused["request_rate"] != 1 || len(requests.got) != 8 {
			t.Errorf("counted %v, stored %d", refused, len(requests.got))
		}
		<-time.After(500 * time.Millisecond)
		h.send(aRequest)
		if e := h.received(); len(e) != 1 || e[0].Type != "accepted" {
			t.Errorf("half a second later: %+v", e)
		}
		h.send(`{"type":"ping"}`) // other messages have a rate of their own
		if e := h.received(); len(e) != 1 || e[0].Type != "pong" {
			t.Errorf("answered with %+v", e)
		}
	})
}

func TestFullRequestLists(t *testing.T) {
	for err, want := range map[error]string{
		queue.ErrRequestCap: "request_queue", queue.ErrRequestBytes: "request_bytes",
		queue.ErrRequestShare: "request_share", queue.ErrRequestShareBytes: "request_share_bytes",
		errors.New("away"): "",
	} {
		synctest.Test(t, func(t *testing.T) {
			o, refused := countRefusals(session.Options{Requests: session.Requests{From: namespace.Users}})
			h, requests := newRequester(t, o, asAlice)
			requests.err = fmt.Errorf("push: %w", err)
			h.send(aRequest)
			e := h.received()
			switch {
			case len(e) != 1:
				t.Fatalf("answered with %+v", e)
			case want == "" && e[0].Code != "unavailable":
				t.Errorf("%v: answered with %+v", err, e[0])
			case want != "" && (e[0].Code != "rate_limited" || !strings.Contains(e[0].Message, "(limits."+want+")") || refused[want] != 1):
				t.Errorf("%v: answered with %+v, counted %v", err, e[0], refused)
			}
		})
	}
}
