//go:build long

package attack

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/golang-jwt/jwt/v5"
)

const (
	malformed = "error:bad_request"
	denied    = "error:forbidden"
)

// A badChannel is a channel that mallory, a user without grants, may not use. name is JSON text.
type badChannel struct{ name, want string }

var badChannels = []badChannel{
	{``, malformed},
	{strings.Repeat("a", 201), malformed},
	{"room:" + strings.Repeat("é", 98), malformed}, // 201 bytes, 103 characters
	{"room:" + strings.Repeat("a", 60_000), malformed},
	{`room:\u0000`, malformed},
	{`hall:a\nb`, malformed},
	{`hall:a\r\nGET /`, malformed},
	{`hall:a\u007f`, malformed},
	{`hall:a\u0085`, malformed}, // next line
	{`hall:a\u00a0b`, malformed},
	{`hall:a\u2028b`, malformed},
	{`room:\u001b[2J`, malformed},
	{`room: a`, malformed},
	{`room:{x}`, malformed},
	{`{hall:x}`, malformed},
	{`hall:x}`, malformed},
	{`inbox:{user}`, malformed},
	{`inbox:mallory `, malformed},
	{`inbox:mallory\u0000admin`, malformed},

	{`inbox:admin`, denied},
	{`inbox:`, denied},
	{`inbox`, denied},
	{`inbox:*`, denied},
	{`inbox:Mallory`, denied},
	{`INBOX:mallory`, denied},
	{`inbox:mallory:`, denied},
	{`inbox:mallory:x`, denied},
	{`inbox:mallory,inbox:admin`, denied},
	{`inbox:../inbox:admin`, denied},
	{`inbox:mallory\u200b`, denied},      // a zero-width space
	{`inbox:m\u0430llory`, denied},       // a Cyrillic letter
	{`inbox:mallor\u0079\u0301`, denied}, // a combining accent
	{`\uff49nbox:mallory`, denied},       // a full-width letter
	{`inbox:nimda\u202e`, denied},        // a right-to-left override
	{`inbox:\ud800`, denied},             // half of a surrogate pair
	{`inbox:%61dmin`, denied},
	{`room:`, denied},
	{`hall:*`, denied},
	{`room`, denied},
	{`*`, denied},
	{`nowhere`, denied},
	{`mq_c_admin`, denied},
	{`$all`, denied},
	{`$`, denied},
	{`$user:admin`, denied},
	{`$user:mallory\u200b`, denied},
	{`$USER:admin`, denied},
	{`$probe`, denied},
	{`__proto__`, denied},
}

// channelNames uses each of badChannels in all kinds of requests.
func channelNames(t *testing.T, s *scenario) {
	for _, e := range endpoints {
		a := s.connectUser(t, e, "mallory")
		for _, channel := range badChannels {
			for _, request := range []string{
				`{"type":"subscribe","channel":"%s"}`, `{"type":"subscribe","presence":true,"after":0,"channel":"%s"}`,
				`{"type":"publish","data":1,"channel":"%s"}`, `{"type":"history","after":0,"channel":"%s"}`, `{"type":"presence","channel":"%s"}`,
			} {
				a.send(fmt.Sprintf(request, channel.name))
				if got := a.reply(); got != channel.want {
					t.Errorf("%s: "+request+": got %q, want %q", e.name, fmt.Sprintf("%.60s", channel.name), got, channel.want)
				}
			}
		}
		a.send(`{"type":"subscribe","channel":"inbox:mallory"}`)
		a.waitFor(t, "subscribed")
		_ = a.Close()
	}
}

// badNames are invalid names of channels, users and clients, as JSON text.
var badNames = []string{
	strings.Repeat("a", 201), `a b`, `a\u0000`, `a\nb`, `{a}`, `a}`, `a\u2028`, `a\u0085`, `\u001b[0m`, `\t`,
}

// clientNames connects with invalid client names.
func clientNames(t *testing.T, s *scenario) {
	for _, e := range endpoints {
		for _, name := range badNames {
			for _, field := range []string{"client", "instance"} {
				a := s.open(t, e, "")
				a.send(fmt.Sprintf(`{"type":"connect",%q:"%s","token":%q}`, field, name, s.token("mallory")))
				if got, want := a.refusal(), e.closing("error:bad_request", "unauthorized", 4003); got != want {
					t.Errorf("%s: %s %.30q: got %q, want %q", e.name, field, name, got, want)
				}
			}
		}
		if e.frames {
			for _, name := range []string{"a%00", "a%0a", "%7Ba%7D", "a+b", "%ff", strings.Repeat("a", 201)} {
				a := s.open(t, e, "?client="+name+"&token="+s.token("mallory"))
				if got, want := a.refusal(), e.closing("error:bad_request", "unauthorized", 4003); got != want {
					t.Errorf("%s: client %.30q in the URL: got %q, want %q", e.name, name, got, want)
				}
			}
		}
	}
}

// namesInAPICalls uses invalid names in calls of the API, as a backend that passes on user input
// would.
func namesInAPICalls(t *testing.T, s *scenario) {
	for _, name := range badNames {
		for _, target := range []string{`"channel":"%s"`, `"channels":["%s"]`, `"user":"%s"`, `"client":"%s"`} {
			body := `{` + fmt.Sprintf(target, name) + `,"data":1}`
			if status, answer := s.call(s.ctx, t, http.MethodPost, "/v1/push", body); status != http.StatusBadRequest {
				t.Errorf("%.60s: %d %s", body, status, answer)
			}
		}
	}
	for _, name := range []string{"$all", "$user:admin", "$", "inbox:*", "nowhere"} {
		status, answer := s.call(s.ctx, t, http.MethodPost, "/v1/push", fmt.Sprintf(`{"channel":%q,"data":1}`, name))
		if status != http.StatusBadRequest && status != http.StatusForbidden {
			t.Errorf("a push to %s: %d %s", name, status, answer)
		}
	}
	for _, name := range []string{"\x00", "a b", "{a}", "a\nb", "\xff", strings.Repeat("a", 201)} {
		for _, path := range []string{"/v1/channels/", "/v1/users/"} {
			if status, answer := s.call(s.ctx, t, http.MethodGet, path+url.PathEscape(name), ""); status != http.StatusBadRequest {
				t.Errorf("%s%.30q: %d %s", path, name, status, answer)
			}
		}
	}
	for _, path := range []string{"/v1/channels/..%2f..%2fdebug%2fpprof%2f", "/v1/channels/%2e%2e/history", "/v1/users/%2e%2e%2fservers/disconnect"} {
		if status, answer := s.call(s.ctx, t, http.MethodGet, path, ""); status >= 500 || strings.Contains(answer, "goroutine") {
			t.Errorf("%s: %d %.200s", path, status, answer)
		}
	}
}

// stealClientIDs connects with the ids of the honest clients, to end their connections and receive
// their messages. If the id names no user, the client becomes one of mallory's own.
func stealClientIDs(t *testing.T, s *scenario) {
	token := sign(header("HS256", kidHMAC), claims("mallory", nil), jwt.SigningMethodHS256, s.shared)
	for _, e := range endpoints {
		for _, h := range s.traffic.clients {
			for _, more := range []string{``, `,"instance":"x","attempt":9007199254740991`, `,"after":0,"ack":"auto"`, `,"user":"` + h.name + `"`} {
				a := s.open(t, e, "")
				a.send(fmt.Sprintf(`{"type":"connect","client":"%[1]s/%[1]s","token":%[2]q%[3]s}`, h.name, token, more))
				if got, want := a.refusal(), e.closing(malformed, "unauthorized", 4003); got != want {
					t.Errorf("%s: as %s, with %q: got %q, want %q", e.name, h.name, more, got, want)
				}
				a = s.open(t, e, "")
				a.send(fmt.Sprintf(`{"type":"connect","client":%q,"token":%q%s}`, h.name, token, more))
				if got := a.waitFor(t, "connected").Client; got != "mallory/"+h.name {
					t.Errorf("%s: as %s, with %q: got %s", e.name, h.name, more, got)
				}
				_ = a.Close()
			}
		}
	}
}
