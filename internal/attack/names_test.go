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

// trick is a channel that mallory, a user without grants, asks for; the name stands in JSON as it is here.
type trick struct{ name, want string }

var channelTricks = []trick{
	{``, malformed},
	{strings.Repeat("a", 201), malformed},
	{"room:" + strings.Repeat("é", 98), malformed}, // 201 bytes, 103 characters
	{"room:" + strings.Repeat("a", 60_000), malformed},
	{`room:\u0000`, malformed},
	{`room:a\nb`, malformed},
	{`room:a\r\nGET /`, malformed},
	{`room:a\u007f`, malformed},
	{`room:a\u0085`, malformed}, // next line
	{`room:a\u00a0b`, malformed},
	{`room:a\u2028b`, malformed},
	{`room:\u001b[2J`, malformed},
	{`room: a`, malformed},
	{`room:{x}`, malformed},
	{`{room:x}`, malformed},
	{`room:x}`, malformed},
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
	{`inbox:mallory\u200b`, denied},      // a space without width
	{`inbox:m\u0430llory`, denied},       // a Cyrillic letter
	{`inbox:mallor\u0079\u0301`, denied}, // an accent by itself
	{`\uff49nbox:mallory`, denied},       // a wide letter
	{`inbox:nimda\u202e`, denied},        // what follows is shown from right to left
	{`inbox:\ud800`, denied},             // half of a character
	{`inbox:%61dmin`, denied},
	{`room:`, denied},
	{`room:*`, denied},
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

// channelNames asks for each of them in every way that there is.
func channelNames(t *testing.T, s *siege) {
	for _, e := range entrances {
		a := s.known(t, e, "mallory")
		for _, trick := range channelTricks {
			for _, say := range []string{
				`{"type":"subscribe","channel":"%s"}`, `{"type":"subscribe","presence":true,"after":0,"channel":"%s"}`,
				`{"type":"publish","data":1,"channel":"%s"}`, `{"type":"history","after":0,"channel":"%s"}`, `{"type":"presence","channel":"%s"}`,
			} {
				a.say(fmt.Sprintf(say, trick.name))
				if got := a.answer(); got != trick.want {
					t.Errorf("%s: "+say+" is told %q, want %q", e.name, fmt.Sprintf("%.60s", trick.name), got, trick.want)
				}
			}
		}
		a.say(`{"type":"subscribe","channel":"inbox:mallory"}`)
		a.until(t, "subscribed")
		_ = a.Close()
	}
}

// badNames are none, of whatever; as JSON text.
var badNames = []string{
	strings.Repeat("a", 201), `a b`, `a\u0000`, `a\nb`, `{a}`, `a}`, `a\u2028`, `a\u0085`, `\u001b[0m`, `\t`,
}

// clientNames connects as a client that cannot be.
func clientNames(t *testing.T, s *siege) {
	for _, e := range entrances {
		for _, name := range badNames {
			for _, field := range []string{"client", "instance"} {
				a := s.enter(t, e, "")
				a.say(fmt.Sprintf(`{"type":"connect",%q:"%s","token":%q}`, field, name, s.token("mallory")))
				if got, want := a.refusal(), e.closing("error:bad_request", "unauthorized", 4003); got != want {
					t.Errorf("%s: %s %.30q is told %q, want %q", e.name, field, name, got, want)
				}
			}
		}
		if e.frames {
			for _, name := range []string{"a%00", "a%0a", "%7Ba%7D", "a+b", "%ff", strings.Repeat("a", 201)} {
				a := s.enter(t, e, "?client="+name+"&token="+s.token("mallory"))
				if got, want := a.refusal(), e.closing("error:bad_request", "unauthorized", 4003); got != want {
					t.Errorf("%s: client %.30q in the URL is told %q, want %q", e.name, name, got, want)
				}
			}
		}
	}
}

// calledNames are those that a backend was talked into calling with.
func calledNames(t *testing.T, s *siege) {
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

// stolenDevices connects under the client ids of the crowd: whose connections it would end, and whose messages it
// would get. Without their users before them these are mallory's own.
func stolenDevices(t *testing.T, s *siege) {
	thief := seal(header("HS256", kidHMAC), claims("mallory", nil), jwt.SigningMethodHS256, s.shared)
	for _, e := range entrances {
		for _, m := range s.crowd.members {
			for _, more := range []string{``, `,"instance":"x","attempt":9007199254740991`, `,"after":0,"ack":"auto"`, `,"user":"` + m.name + `"`} {
				a := s.enter(t, e, "")
				a.say(fmt.Sprintf(`{"type":"connect","client":"%[1]s/%[1]s","token":%[2]q%[3]s}`, m.name, thief, more))
				if got, want := a.refusal(), e.closing(malformed, "unauthorized", 4003); got != want {
					t.Errorf("%s: as %s, with %q: told %q, want %q", e.name, m.name, more, got, want)
				}
				a = s.enter(t, e, "")
				a.say(fmt.Sprintf(`{"type":"connect","client":%q,"token":%q%s}`, m.name, thief, more))
				if got := a.until(t, "connected").Client; got != "mallory/"+m.name {
					t.Errorf("%s: as %s, with %q: became %s", e.name, m.name, more, got)
				}
				_ = a.Close()
			}
		}
	}
}
