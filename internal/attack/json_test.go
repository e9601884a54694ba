//go:build long

package attack

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
)

// A bomb is a message that is cheap to send and expensive to parse.
type bomb struct {
	name, text    string
	beforeConnect string // the error for a bomb instead of a connect; the connection is then closed
	afterConnect  string // the error for a bomb after a connect, or closed
}

func nested(open, inner, end string, n int) string {
	return strings.Repeat(open, n) + inner + strings.Repeat(end, n)
}

// bombs are smaller than the message limit of 64 KiB.
var bombs = []bomb{
	{"arrays in arrays", nested("[", "", "]", 30_000), malformed, closed},
	{"arrays without an end", strings.Repeat("[", 60_000), malformed, closed},
	{"objects in objects", nested(`{"a":`, "1", "}", 9_000), malformed, malformed},
	{"deep data", `{"type":"publish","channel":"hall:x","data":` + nested("[", "", "]", 9_000) + `}`, malformed, malformed},
	{"deep data in an unknown field", `{"type":"ping","x":` + nested("[", "", "]", 65) + `}`, malformed, malformed},
	{"a deep info", `{"type":"connect","info":` + nested(`{"a":`, "1", "}", 100) + `}`, malformed, malformed},
	{"a number of 60,000 digits", `{"type":"history","channel":"hall:x","after":` + strings.Repeat("9", 60_000) + `}`, malformed, malformed},
	{"a number that is too large", `{"type":"history","channel":"hall:x","limit":1e999999999}`, malformed, malformed},
	{"a ref that is too large", `{"type":"ping","ref":1e999999999}`, malformed, malformed},
	{"a ref of 60,000 digits", `{"type":"ping","ref":` + strings.Repeat("1", 60_000) + `}`, malformed, malformed},
	{"a negative id", `{"type":"subscribe","channel":"hall:x","after":-9223372036854775808}`, malformed, malformed},
	{"an id with a fraction", `{"type":"subscribe","channel":"hall:x","after":0.5}`, malformed, malformed},
	{"an array of 30,000 in the place of a name", `{"type":"subscribe","channel":[` + strings.Repeat("0,", 30_000) + `0]}`, malformed, malformed},
	{"an object in the place of a type", `{"type":{"type":"ping"}}`, malformed, malformed},
	{"a type of 60,000 bytes", `{"type":"` + strings.Repeat("p", 60_000) + `"}`, malformed, malformed},
	{"a type twice", `{"type":"connect","type":"nothing"}`, malformed, malformed},
	{"4,000 types", `{` + strings.Repeat(`"type":"ping",`, 4_000) + `"type":"nothing"}`, malformed, malformed},
	{"5,000 fields", manyFields(5_000), malformed, malformed},
	{"no UTF-8", "{\"type\":\"pi\xffng\"}", notText, notText}, // a bad request on a connection with lines
	{"no JSON", strings.Repeat("}", 60_000), malformed, closed},
	{"nothing but quotes", strings.Repeat(`"`, 60_001), malformed, closed},
	{"nothing but backslashes", `{"type":"` + strings.Repeat(`\\`, 30_000), malformed, closed},
	{"null", "null", malformed, closed},
	{"HTTP", "POST /v1/push HTTP/1.1", malformed, closed},
}

const (
	closed  = "closed"   // the connection is closed as bad_request
	notText = "not text" // a WebSocket is closed with code 1007
)

func manyFields(n int) string {
	var b strings.Builder
	b.WriteString(`{"type":"nothing"`)
	for i := range n {
		fmt.Fprintf(&b, `,"f%d":%d`, i, i)
	}
	return b.String() + "}"
}

// bombsBeforeConnect sends the bombs instead of a connect.
func bombsBeforeConnect(t *testing.T, s *scenario) {
	for _, e := range endpoints {
		for _, b := range bombs {
			a := s.open(t, e, "")
			a.send(b.text)
			want := e.closing(malformed, "bad_request", 4006)
			if len(b.text) > 16<<10 { // the limit of a message before connect
				want = e.closing("error:too_large", "bad_request", 4006)
			}
			if strings.HasPrefix(b.text, "POST ") && !e.frames { // the broker answers HTTP in HTTP
				want = "HTTP 400"
			}
			if b.beforeConnect == notText && e.frames {
				want = "1007"
			}
			if got := a.outcome(); got != want {
				t.Errorf("%s, %s: got %q, want %q", b.name, e.name, got, want)
			}
		}
	}
}

// bombsAfterConnect sends the bombs on connections of a user. A connection must stay open unless
// the message is not a JSON object.
func bombsAfterConnect(t *testing.T, s *scenario) {
	for _, e := range endpoints {
		a := s.connectUser(t, e, "mallory")
		for _, b := range bombs {
			a.send(b.text)
			switch {
			case b.afterConnect == notText && e.frames:
				if got := a.outcome(); got != "1007" {
					t.Errorf("%s, %s: got %q, want 1007", b.name, e.name, got)
				}
				a = s.connectUser(t, e, "mallory")
			case b.afterConnect == closed:
				if got, want := a.outcome(), e.closing(malformed, "bad_request", 4006); got != want {
					t.Errorf("%s, %s: got %q, want %q", b.name, e.name, got, want)
				}
				a = s.connectUser(t, e, "mallory")
			default:
				if got := a.reply(); got != malformed {
					t.Errorf("%s, %s: got %q, want %q", b.name, e.name, got, malformed)
				}
			}
		}
		_ = a.Close()
	}
}

// bombsInCalls sends bombs in API calls, with a key and without.
func bombsInCalls(t *testing.T, s *scenario) {
	const most = 16 << 20
	push := func(data string) string { return `{"channel":"hall:bombs","data":` + data + `}` }
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
		{"a ttl that is too large", "/v1/push", `{"user":"bombs","ttl":1e999,"data":1}`, http.StatusBadRequest},
		{"a ttl of 1e300 seconds", "/v1/push", `{"user":"bombs","ttl":1e300,"data":1}`, http.StatusBadRequest},
		{"a negative ttl", "/v1/push", `{"user":"bombs","ttl":-1,"data":1}`, http.StatusBadRequest},
		{"1.5 million channels", "/v1/push", `{"channels":[` + strings.Repeat(`"hall:a",`, 1_500_000) + `"hall:a"],"data":1}`, http.StatusRequestEntityTooLarge},
		{"five million names", "/v1/push", `{"users":[` + strings.Repeat(`"",`, 5_000_000) + `""],"data":1}`, http.StatusRequestEntityTooLarge},
		{"five million users", "/v1/users/query", `{"users":[` + strings.Repeat(`"",`, 5_000_000) + `""]}`, http.StatusRequestEntityTooLarge},
		{"two kinds of target", "/v1/push", `{"channel":"hall:a","user":"b","data":1}`, http.StatusBadRequest},
		{"no body", "/v1/push", "", http.StatusBadRequest},
		{"a body without an end", "/v1/push", strings.Repeat(" ", most+1), http.StatusRequestEntityTooLarge},
		{"too many messages", "/v1/push/batch", batch(1_001, push("1")), http.StatusBadRequest},
		{"very many messages", "/v1/push/batch", batch(5_000_000, "{}"), http.StatusBadRequest},
		{"messages in messages", "/v1/push/batch", nested(`{"messages":[`, "", "]}", 500_000), http.StatusBadRequest},
		{"too many users", "/v1/users/query", `{"users":[` + strings.Repeat(`"a",`, 1_000) + `"a"]}`, http.StatusBadRequest},
		{"extra text after the object", "/v1/push", push("1") + push("2"), http.StatusBadRequest},
		{"compressed", "/v1/push", "\x1f\x8b\x08\x00" + strings.Repeat("\x00", 1000), http.StatusBadRequest},
		{"no UTF-8", "/v1/push", push("\"\xff\""), http.StatusBadRequest},
	} {
		status, answer, err := s.request(s.ctx, http.MethodPost, c.path, s.Key, strings.NewReader(c.body))
		if err != nil || status != c.want {
			t.Errorf("%s: %d %.200s (%v), want %d", c.name, status, answer, err, c.want)
		}
	}
	// Without a key the broker does not read the body. net/http then resets the connection, and the
	// sender may see that before the response.
	for range 20 {
		status, _, err := s.request(s.ctx, http.MethodPost, "/v1/push", "", io.MultiReader(bytes.NewReader(make([]byte, most))))
		if err == nil && status != http.StatusUnauthorized {
			t.Errorf("a large body without a key: %d", status)
		}
	}
}
