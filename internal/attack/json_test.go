package attack

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// bomb is a message that is meant to cost its reader more than its writer.
type bomb struct {
	name, text string
	stranger   string // what who has not connected is told before he is closed as bad_request
	user       string // what a user is told; where it is closed, the connection is, too
}

func nested(open, inner, end string, n int) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
}

// bombs are below the limit of a message, 64 KiB.
var bombs = []bomb{
	{"arrays in arrays", nested("[", "", "]", 30_000), malformed, closed},
	{"arrays that nobody closes", strings.Repeat("[", 60_000), malformed, closed},
	{"objects in objects", nested(`{"a":`, "1", "}", 9_000), malformed, malformed},
	{"deep data", `{"type":"publish","channel":"room:x","data":` + nested("[", "", "]", 9_000) + `}`, malformed, malformed},
	{"deep in a field that nobody knows", `{"type":"ping","x":` + nested("[", "", "]", 65) + `}`, malformed, malformed},
	{"a deep info", `{"type":"connect","info":` + nested(`{"a":`, "1", "}", 100) + `}`, malformed, malformed},
	{"a number of 60,000 digits", `{"type":"history","channel":"room:x","after":` + strings.Repeat("9", 60_000) + `}`, malformed, malformed},
	{"a number beyond all", `{"type":"history","channel":"room:x","limit":1e999999999}`, malformed, malformed},
	{"a ref beyond all", `{"type":"ping","ref":1e999999999}`, malformed, malformed},
	{"a ref of 60,000 digits", `{"type":"ping","ref":` + strings.Repeat("1", 60_000) + `}`, malformed, malformed},
	{"an id below zero", `{"type":"subscribe","channel":"room:x","after":-9223372036854775808}`, malformed, malformed},
	{"an id with a fraction", `{"type":"subscribe","channel":"room:x","after":0.5}`, malformed, malformed},
	{"an array of 30,000 in the place of a name", `{"type":"subscribe","channel":[` + strings.Repeat("0,", 30_000) + `0]}`, malformed, malformed},
	{"an object in the place of a type", `{"type":{"type":"ping"}}`, malformed, malformed},
	{"a type of 60,000 bytes", `{"type":"` + strings.Repeat("p", 60_000) + `"}`, malformed, malformed},
	{"a type twice", `{"type":"connect","type":"nothing"}`, malformed, malformed},
	{"5,000 types", `{` + strings.Repeat(`"type":"ping",`, 4_000) + `"type":"nothing"}`, malformed, malformed},
	{"10,000 fields", manyFields(5_000), malformed, malformed},
	{"no UTF-8", "{\"type\":\"pi\xffng\"}", notText, notText}, // to a line it is a bad request, like others
	{"no JSON", strings.Repeat("}", 60_000), malformed, closed},
	{"nothing but quotes", strings.Repeat(`"`, 60_001), malformed, closed},
	{"nothing but backslashes", `{"type":"` + strings.Repeat(`\\`, 30_000), malformed, closed},
	{"null", "null", malformed, closed},
	{"HTTP", "POST /v1/push HTTP/1.1", malformed, closed},
}

const (
	closed  = "closed"   // as bad_request
	notText = "not text" // WebSocket has a code of its own for it
)

func manyFields(n int) string {
	var b strings.Builder
	b.WriteString(`{"type":"nothing"`)
	for i := range n {
		fmt.Fprintf(&b, `,"f%d":%d`, i, i)
	}
	return b.String() + "}"
}

// bombsFromStrangers comes before any connect.
func bombsFromStrangers(t *testing.T, s *siege) {
	for _, e := range entrances {
		for _, b := range bombs {
			a := s.enter(t, e, "")
			a.say(b.text)
			want := e.closing(malformed, "bad_request", 4006)
			if len(b.text) > 16<<10 { // the limit of a message before connect
				want = e.closing("error:too_large", "bad_request", 4006)
			}
			if strings.HasPrefix(b.text, "POST ") && !e.frames { // it is told so in its own protocol
				want = "HTTP 400"
			}
			if b.stranger == notText && e.frames {
				want = "1007"
			}
			if got := a.verdict(); got != want {
				t.Errorf("%s, %s: told %q, want %q", b.name, e.name, got, want)
			}
		}
	}
}

// bombsFromUsers comes behind a good token; the connection stays open unless it is no JSON object at all.
func bombsFromUsers(t *testing.T, s *siege) {
	for _, e := range entrances {
		a := s.known(t, e, "mallory")
		for _, b := range bombs {
			a.say(b.text)
			switch {
			case b.user == notText && e.frames:
				if got := a.verdict(); got != "1007" {
					t.Errorf("%s, %s: told %q, want 1007", b.name, e.name, got)
				}
				a = s.known(t, e, "mallory")
			case b.user == closed:
				if got, want := a.verdict(), e.closing(malformed, "bad_request", 4006); got != want {
					t.Errorf("%s, %s: told %q, want %q", b.name, e.name, got, want)
				}
				a = s.known(t, e, "mallory")
			default:
				if got := a.answer(); got != malformed {
					t.Errorf("%s, %s: told %q, want %q", b.name, e.name, got, malformed)
				}
			}
		}
		_ = a.Close()
	}
}

// bombsInCalls are what a backend may be made to send, and strangers to the API send as well.
func bombsInCalls(t *testing.T, s *siege) {
	const most = 16 << 20
	push := func(data string) string { return `{"channel":"room:bombs","data":` + data + `}` }
	batch := func(n int, message string) string {
		return `{"messages":[` + strings.TrimSuffix(strings.Repeat(message+",", n), ",") + `]}`
	}
	for _, c := range []struct {
		name, path, body string
		want             int
	}{
		{"deep data", "/v1/push", push(nested("[", "", "]", 30_000)), http.StatusBadRequest},
		{"deeper data", "/v1/push", push(strings.Repeat("[", 8<<20)), http.StatusBadRequest},
		{"a deep field", "/v1/push", nested(`{"channel":`, "1", "}", 1_000_000), http.StatusBadRequest},
		{"long data", "/v1/push", push(`"` + strings.Repeat("x", 1<<20) + `"`), http.StatusRequestEntityTooLarge},
		{"a number of a million digits", "/v1/push", push(strings.Repeat("9", 1<<20)), http.StatusRequestEntityTooLarge},
		{"a ttl beyond all", "/v1/push", `{"user":"bombs","ttl":1e999,"data":1}`, http.StatusBadRequest},
		{"a ttl of ages", "/v1/push", `{"user":"bombs","ttl":1e300,"data":1}`, http.StatusBadRequest},
		{"a ttl below zero", "/v1/push", `{"user":"bombs","ttl":-1,"data":1}`, http.StatusBadRequest},
		{"two million channels", "/v1/push", `{"channels":[` + strings.Repeat(`"room:a",`, 1_500_000) + `"room:a"],"data":1}`, http.StatusRequestEntityTooLarge},
		{"five million names", "/v1/push", `{"users":[` + strings.Repeat(`"",`, 5_000_000) + `""],"data":1}`, http.StatusRequestEntityTooLarge},
		{"five million users", "/v1/users/query", `{"users":[` + strings.Repeat(`"",`, 5_000_000) + `""]}`, http.StatusRequestEntityTooLarge},
		{"two kinds of target", "/v1/push", `{"channel":"room:a","user":"b","data":1}`, http.StatusBadRequest},
		{"no body", "/v1/push", "", http.StatusBadRequest},
		{"a body without an end", "/v1/push", strings.Repeat(" ", most+1), http.StatusRequestEntityTooLarge},
		{"too many messages", "/v1/push/batch", batch(1_001, push("1")), http.StatusBadRequest},
		{"very many messages", "/v1/push/batch", batch(5_000_000, "{}"), http.StatusBadRequest},
		{"messages in messages", "/v1/push/batch", nested(`{"messages":[`, "", "]}", 500_000), http.StatusBadRequest},
		{"too many users", "/v1/users/query", `{"users":[` + strings.Repeat(`"a",`, 1_000) + `"a"]}`, http.StatusBadRequest},
		{"something behind it", "/v1/push", push("1") + push("2"), http.StatusBadRequest},
		{"compressed", "/v1/push", "\x1f\x8b\x08\x00" + strings.Repeat("\x00", 1000), http.StatusBadRequest},
		{"no UTF-8", "/v1/push", push("\"\xff\""), http.StatusBadRequest},
	} {
		status, answer, err := s.request(s.ctx, http.MethodPost, c.path, s.key, strings.NewReader(c.body))
		if err != nil || status != c.want {
			t.Errorf("%s: %d %.200s (%v), want %d", c.name, status, answer, err, c.want)
		}
	}
	// Without a key nothing of the body is read; net/http then hangs up on the rest, which the sender may see first.
	for range 20 {
		status, _, err := s.request(s.ctx, http.MethodPost, "/v1/push", "", io.MultiReader(bytes.NewReader(make([]byte, most))))
		if err == nil && status != http.StatusUnauthorized {
			t.Errorf("a large body without a key: %d", status)
		}
	}
}
