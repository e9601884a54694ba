package sse

import (
	"errors"
	"net/http"
	"net/url"
	"os"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"time"
	"unsafe"

	"switchboard/broker/dialect"
	"switchboard/broker/dialect/native"
	"switchboard/internal/ssetest"
	"switchboard/internal/wire"
)

// open begins a stream; headers are "name: value".
func open(t testing.TB, query string, headers ...string) dialect.Opening {
	t.Helper()
	o, err := tryOpen(query, headers...)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func tryOpen(query string, headers ...string) (dialect.Opening, error) {
	d := New(25 * time.Second)
	d.retry = func() int64 { return 1500 }
	h := http.Header{}
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		h.Set(name, value)
	}
	return d.Open(dialect.Hello{
		URL: &url.URL{Path: "/sse", RawQuery: query}, Header: h, Response: http.Header{"Vary": {"Origin"}},
	})
}

func ptr[T any](v T) *T { return &v }

func connected(all int64) wire.Event {
	return wire.Event{Type: wire.TypeConnected, Client: "alice/phone", User: "alice", Server: "b1", Ping: 25, ID: &all}
}

func subscribed(ref, id int64, channel string) wire.Event {
	return wire.Event{Type: wire.TypeSubscribed, Ref: wire.RefOf(ref), Channel: channel, ID: &id}
}

func inboxMessage(id int64) wire.Event {
	return wire.Event{Type: wire.TypeMessage, ID: &id, Data: []byte(`"hi"`)}
}

var dates = regexp.MustCompile(`Date: [^\r]*`)

// TestGolden compares a whole stream with a file.
func TestGolden(t *testing.T) {
	o := open(t, "channel=news&channel=room/7&client=phone&token=t")
	c, messages := o.Encoding, native.New(0)
	const id = 735325130218600
	var out []byte
	for _, e := range []wire.Event{
		connected(id), subscribed(1, id+1, "news"), subscribed(2, 0, "room/7"), inboxMessage(id + 2),
		{Type: wire.TypeError, Ref: wire.RefOf(2), Code: "forbidden", Message: "no"},
		{Type: wire.TypeGap, Channel: "news", After: ptr(int64(id + 1)), ID: ptr(int64(id + 5))},
	} {
		out = c.AppendEvent(out, e)
	}
	out = c.AppendMessage(out, messages.Message("news", id+6, []byte(`{"a":1}`)))
	out = c.AppendMessage(out, messages.Event(wire.Event{Type: wire.TypeJoin, Channel: "news", User: "bob", Client: "bob/tab"}))
	out = c.AppendPing(out)
	out, _ = c.AppendClosing(out, wire.CloseSuperseded, "the client connected elsewhere", 0)
	got := dates.ReplaceAllString(string(out), "Date: now")
	got = strings.ReplaceAll(got, "\r\n", "\n")
	const file = "testdata/stream.txt"
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || got != string(want) {
		t.Errorf("the stream is\n%s\nwant %s (%v); UPDATE=1 writes it", got, file, err)
	}
}

// read returns the events of a stream without its head.
func read(t testing.TB, out []byte) (events []ssetest.Event) {
	t.Helper()
	_, body, ok := strings.Cut(string(out), "\r\n\r\n")
	if !ok {
		body = string(out)
	}
	r := ssetest.NewReader(strings.NewReader(body), "")
	for {
		e, err := r.Next()
		if err != nil {
			if e.Raw != "" {
				t.Fatalf("the stream ends with half an event: %q", e.Raw)
			}
			return events
		}
		events = append(events, e)
	}
}

// TestResume checks the requests of a client that resumes with the id of each event.
func TestResume(t *testing.T) {
	const query = "channel=a&channel=b&token=t"
	c := open(t, query).Encoding
	messages := native.New(0)
	steps := []struct {
		out              []byte
		all, inbox, a, b int64 // -1: not in the request
	}{
		{out: c.AppendEvent(nil, connected(100)), all: 100, inbox: -1, a: -1, b: -1},
		{out: c.AppendEvent(nil, subscribed(1, 50, "a")), all: 100, inbox: -1, a: 50, b: -1},
		{out: c.AppendEvent(nil, subscribed(2, 0, "b")), all: 100, inbox: -1, a: 50, b: 0},
		{out: c.AppendEvent(nil, inboxMessage(700)), all: 100, inbox: 700, a: 50, b: 0},
		{out: c.AppendMessage(nil, messages.Message("b", 800, []byte(`1`))), all: 100, inbox: 700, a: 50, b: 800},
		{out: c.AppendMessage(nil, messages.Message("$all", 801, []byte(`1`))), all: 801, inbox: 700, a: 50, b: 800},
		{out: c.AppendEvent(nil, wire.Event{Type: wire.TypeGap, Channel: "a", After: ptr(int64(50)), ID: ptr(int64(60))}), all: 801, inbox: 700, a: 60, b: 800},
		// A loss that is found late: newer messages have arrived.
		{out: c.AppendEvent(nil, wire.Event{Type: wire.TypeGap, Channel: "b", After: ptr(int64(750)), ID: ptr(int64(760))}), all: 801, inbox: 700, a: 60, b: 800},
		// A reset: the store has forgotten what the client saw.
		{out: c.AppendEvent(nil, wire.Event{Type: wire.TypeGap, Channel: "b", After: ptr(int64(800)), ID: ptr(int64(400))}), all: 801, inbox: 700, a: 60, b: 400},
		{out: c.AppendEvent(nil, wire.Event{Type: wire.TypeGap, After: ptr(int64(700)), ID: ptr(int64(710))}), all: 801, inbox: 710, a: 60, b: 400},
	}
	for i, step := range steps {
		events := read(t, step.out)
		o := open(t, query, "Last-Event-ID: "+events[len(events)-1].ID)
		want := []wire.Request{{Type: wire.TypeConnect, Token: "t", Client: "phone", After: &step.all}}
		if step.inbox >= 0 {
			want = append(want, wire.Request{Type: wire.TypeAck, ID: step.inbox, AckOf: "alice/phone"})
		}
		for n, after := range []int64{step.a, step.b} {
			subscribe := wire.Request{Type: wire.TypeSubscribe, Ref: wire.RefOf(int64(n) + 1), Channel: string(rune('a' + n))}
			if after >= 0 {
				subscribe.After = &after
			}
			want = append(want, subscribe)
		}
		if !reflect.DeepEqual(o.Requests, want) {
			t.Errorf("after event %d the id stands for %+v, want %+v", i, o.Requests, want)
		}
	}
}

// TestUnknownPosition checks that a client receives a gap if the store has forgotten its position
// in a channel. If the stream breaks before the gap, the next stream has it again.
func TestUnknownPosition(t *testing.T) {
	const query = "channel=a&client=phone&token=t"
	first := open(t, query).Encoding
	out := first.AppendEvent(nil, connected(100))
	out = first.AppendEvent(out, subscribed(1, 500, "a"))
	events := read(t, out)
	next := open(t, query, "Last-Event-ID: "+events[1].ID).Encoding
	out = next.AppendEvent(nil, connected(100))
	answer := subscribed(1, 300, "a")
	answer.Recovered = new(bool)
	events = read(t, next.AppendEvent(out, answer))
	if len(events) != 3 || events[1].Name != "subscribed" || events[2].Name != "gap" ||
		events[2].Data != `{"type":"gap","channel":"a","after":500,"id":300}` {
		t.Fatalf("events: %+v", events)
	}
	for i, want := range map[int]int64{0: 500, 1: 500, 2: 300} {
		p, err := ParsePosition(events[i].ID)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := p.Channel("a"); got != want {
			t.Errorf("event %d has position %d, want %d", i, got, want)
		}
	}
	answer = subscribed(1, 500, "a") // the position is known: the gap comes between the messages
	answer.Recovered = new(bool)
	next = open(t, query, "Last-Event-ID: "+events[0].ID).Encoding
	if events := read(t, next.AppendEvent(nil, answer)); len(events) != 1 {
		t.Errorf("events: %+v", events)
	}
}

// TestAnotherClient checks that the position in one client's queue is not used for another client.
func TestAnotherClient(t *testing.T) {
	c := open(t, "token=t").Encoding
	out := c.AppendEvent(nil, connected(100))
	id := read(t, c.AppendEvent(out, inboxMessage(700)))[1].ID
	next := open(t, "token=t&client=phone", "Last-Event-ID: "+id).Encoding
	e := connected(100)
	e.Client = "bob/phone"
	p, err := ParsePosition(read(t, next.AppendEvent(nil, e))[0].ID)
	if err != nil || p.Inbox != 0 || p.Client != "bob/phone" || p.All != 100 {
		t.Errorf("the id is %+v, %v", p, err)
	}
}

// TestSecret checks that the id of an event has the secret of a client without a user, unless the
// client sends its own secret.
func TestSecret(t *testing.T) {
	anonymous := wire.Event{Type: wire.TypeConnected, Client: "c-1", Secret: "drawn by the broker", ID: new(int64)}
	id := ""
	for range 3 { // also when it comes back again and again
		o := open(t, "", "Last-Event-ID: "+id)
		if id != "" && (o.Requests[0].Client != "c-1" || o.Requests[0].Secret != anonymous.Secret) {
			t.Fatalf("the id stands for %+v", o.Requests[0])
		}
		id = read(t, o.Encoding.AppendEvent(nil, anonymous))[0].ID
	}
	own := open(t, "client=c-1&secret=drawn+by+the+broker")
	p, err := ParsePosition(read(t, own.Encoding.AppendEvent(nil, anonymous))[0].ID)
	if err != nil || p.Secret != "" {
		t.Errorf("the id has the secret %q, %v", p.Secret, err)
	}
}

func TestOpenRefuses(t *testing.T) {
	many := strings.Repeat("channel=a&", maxChannels+1)
	for query, want := range map[string]string{
		"channel=a&channel=b&channel=a": "channel: a is given twice",
		"channel=":                      "channel: the name is empty",
		"channel=a%20b":                 "channel: character",
		many:                            "channel: 129 channels",
		"presence=yes":                  "presence: ",
		"ack=never":                     "ack: ",
		"last_event_id=x":               "Last-Event-ID: ",
		"a=%zz":                         "the query",
	} {
		if _, err := tryOpen(query); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", query, err, want)
		}
	}
	first := open(t, "token=t").Encoding
	out := first.AppendEvent(nil, connected(1))
	out, _ = first.AppendClosing(out, wire.CloseDisconnected, "", 0)
	events := read(t, out)
	_, err := tryOpen("token=t", "Last-Event-ID: "+events[1].ID)
	if refusal, ok := errors.AsType[*dialect.Refusal](err); !ok || refusal.Status != http.StatusNoContent {
		t.Errorf("a final id: %v", err)
	}
	if _, err := tryOpen("token=t", "Last-Event-ID: "+events[0].ID); err != nil {
		t.Error(err)
	}
}

func TestQuery(t *testing.T) {
	o := open(t, "channel=a&channel=$user:bob&client=phone&user=al&presence=true&ack=auto&token=query", "Authorization: Bearer header")
	want := []wire.Request{
		{Type: wire.TypeConnect, Token: "header", Client: "phone", User: "al", Ack: "auto"},
		{Type: wire.TypeSubscribe, Ref: wire.RefOf(1), Channel: "a", Presence: true},
		{Type: wire.TypeSubscribe, Ref: wire.RefOf(2), Channel: "$user:bob"},
	}
	if !reflect.DeepEqual(o.Requests, want) {
		t.Errorf("requests: %+v", o.Requests)
	}
	if l := o.Encoding.Liveness(); l != (dialect.Liveness{Ping: 25 * time.Second}) {
		t.Errorf("liveness: %+v", l)
	}
	if p, err := o.Encoding.Cut([]byte("whatever"), 1); err != nil || p.N != 8 || p.Unit != nil {
		t.Errorf("piece %+v, %v", p, err)
	}
}

// TestClosingBeforeConnected checks the response if the stream ends before connected. A client that
// should not reconnect gets the status of an error, and other clients get a retry delay.
func TestClosingBeforeConnected(t *testing.T) {
	for name, test := range map[string]struct {
		refusal wire.ErrorCode
		reason  wire.CloseReason
		after   int64
		status  string
		retry   int
	}{
		"no token":         {wire.Unauthorized, wire.CloseUnauthorized, 0, "401 Unauthorized", 0},
		"an expired token": {wire.Unauthorized, wire.CloseExpired, 0, "401 Unauthorized", 0},
		"another's name":   {wire.Forbidden, wire.CloseUnauthorized, 0, "403 Forbidden", 0},
		"a bad name":       {wire.BadRequest, wire.CloseUnauthorized, 0, "400 Bad Request", 0},
		"disconnected":     {"", wire.CloseDisconnected, 0, "204 No Content", 0},
		"superseded":       {"", wire.CloseSuperseded, 0, "200 OK", supersededMS},
		"a drain":          {"", wire.CloseDraining, 1234, "200 OK", 1234},
		"no store":         {wire.Unavailable, wire.CloseOverloaded, 700, "200 OK", 700},
		"a slow hook":      {"", wire.CloseBadRequest, 0, "200 OK", slowConnectMS},
	} {
		c := open(t, "client=phone").Encoding
		var out []byte
		if test.refusal != "" {
			out = c.AppendEvent(out, wire.Event{Type: wire.TypeError, Code: string(test.refusal), Message: "why"})
		}
		out, _ = c.AppendClosing(out, test.reason, "detail", test.after)
		head, body, _ := strings.Cut(string(out), "\r\n\r\n")
		if !strings.HasPrefix(head, "HTTP/1.1 "+test.status+"\r\n") || !strings.Contains(head, "\r\nVary: Origin") {
			t.Errorf("%s: %s", name, out)
		}
		if test.retry > 0 {
			events := read(t, out)
			if len(events) != 1 || events[0].Name != "closing" || events[0].Retry != test.retry || events[0].ID != "" ||
				!strings.Contains(events[0].Data, `"reconnect":true`) {
				t.Errorf("%s: %q", name, body)
			}
		} else if strings.HasPrefix(test.status, "204") != (body == "") {
			t.Errorf("%s: the body is %q", name, body)
		}
	}
}

// TestSupersededInARow checks that a superseded client may reconnect twice, and then gets a final
// id: two pages with the same client id must not take the stream from each other without end.
func TestSupersededInARow(t *testing.T) {
	var id string
	superseded := func(settled bool) ssetest.Event {
		headers := []string{}
		if id != "" {
			headers = append(headers, "Last-Event-ID: "+id)
		}
		c := open(t, "client=phone", headers...).Encoding
		out := c.AppendEvent(nil, wire.Event{Type: wire.TypeConnected, Client: "phone", ID: new(int64)})
		if settled {
			c.Codec.(*codec).extra.since -= settledSeconds
		}
		out, _ = c.AppendClosing(out, wire.CloseSuperseded, "", 0)
		events := read(t, out)
		last := events[len(events)-1]
		id = last.ID
		return last
	}
	for _, settled := range []bool{false, true} { // a stream that lasts resets the count
		for i := range maxSuperseded {
			e := superseded(settled && i == 0)
			if p, err := ParsePosition(e.ID); err != nil || p.Final || int(p.Superseded) != i+1 || e.Retry != (i+1)*supersededMS || !strings.Contains(e.Data, `"reconnect":true`) {
				t.Fatalf("superseded %d times: %+v, %+v, %v", i+1, e, p, err)
			}
		}
	}
	e := superseded(false)
	if p, err := ParsePosition(e.ID); err != nil || !p.Final || e.Retry != 0 || !strings.Contains(e.Data, `"reconnect":false`) {
		t.Fatalf("superseded once more: %+v, %+v, %v", e, p, err)
	}
}

// TestIdleSize checks the memory of an idle stream with one channel. The next size class of the
// allocator is 128 bytes. The strings are those of the events.
func TestIdleSize(t *testing.T) {
	o := open(t, "client=phone&channel=news&secret=the+secret+of+phone")
	client, name := strings.Clone("phone"), strings.Clone("news")
	o.Encoding.AppendEvent(nil, wire.Event{
		Type: wire.TypeConnected, Client: client, Secret: "the secret of phone", ID: new(int64),
	})
	o.Encoding.AppendEvent(nil, subscribed(1, 7, name))
	c := o.Encoding.Codec.(*codec)
	if n := unsafe.Sizeof(*c); n > 112 || c.extra != nil {
		t.Errorf("a stream takes %d bytes, want at most 112, and %+v", n, c.extra)
	}
	if unsafe.StringData(c.client) != unsafe.StringData(client) || unsafe.StringData(c.first.name) != unsafe.StringData(name) {
		t.Errorf("the stream keeps copies of %q and %q", c.client, c.first.name)
	}
}

// TestTheURLIsNotKept checks that the names that a stream keeps are copies. A URL may have a token
// of 8 KiB.
func TestTheURLIsNotKept(t *testing.T) {
	query := "client=phone&channel=news&token=" + strings.Repeat("t", 8<<10)
	o := open(t, query)
	from, size := uintptr(unsafe.Pointer(unsafe.StringData(query))), uintptr(len(query))
	for _, name := range []string{o.Requests[0].Client, o.Requests[1].Channel} {
		if at := uintptr(unsafe.Pointer(unsafe.StringData(name))); at-from < size { // wraps around if at is below from
			t.Errorf("%s is a part of the URL", name)
		}
	}
}
