package main

import (
	"bytes"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/golang-jwt/jwt/v5"

	"switchboard/configs"
)

const tokenSecret = "hunter2-hunter2-hunter2-hunter2-hunter2"

const rulesFile = `
auth: {hs256_secret: ` + tokenSecret + `}
namespaces:
  "chat:*": {subscribe: users, publish: grant, publish_rate: 5}
  "inbox:{user}": {subscribe: named, presence: off}
  "room:*":
    state: users
    state_keep: forever
    fields_gone: true
    fields:
      "member/{user}": {write: users, own: always, max: 4}
      "seat/*": {write: claim, ttl: 10m, max: 100, bytes: 256, grace: never}
      "p/{n}/*": {write: users, of: "member/{n}"}
`

func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "b.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func sign(t *testing.T, claims jwt.MapClaims) string {
	t.Helper()
	text, err := jwt.NewWithClaims(jwt.SigningMethodHS256, claims).SignedString([]byte(tokenSecret))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// command runs a command in this process.
func command(stdin string, environ []string, args ...string) (code int, stdout, stderr string) {
	var out, failed bytes.Buffer
	code = run(args, environ, strings.NewReader(stdin), &out, &failed)
	return code, out.String(), failed.String()
}

func TestCheck(t *testing.T) {
	path := file(t, rulesFile)
	_, out, _ := command("", nil, "check", "--config", path, "--user", "alice", "--channel", "chat:1")
	if want := `user alice, channel chat:1
  connect    yes  with a valid token whose sub is the user; give the token to apply its grants
  subscribe  yes  namespace chat:*: subscribe is open to users
  publish    no   namespace chat:*: publish is open to grant, and no grant of the token fits
  presence   no   namespace chat:*: presence is open to the backend only
  history    no   namespace chat:*: history is open to the backend only
  state      no   namespace chat:*: state is open to the backend only
  durable    no   namespace chat:*: durable is open to the backend only
  limits          5 messages a second from a connection
`; out != want {
		t.Errorf("got %s", out)
	}
	granted := sign(t, jwt.MapClaims{"sub": "alice", "exp": 4000000000, "channels": map[string]string{"chat:*": "pub"}})
	keyed := []string{"SWITCHBOARD_AUTH_HS256_SECRET=" + tokenSecret}
	for name, c := range map[string]struct {
		environ []string
		stdin   string
		args    []string
		code    int
		want    string
	}{
		"a grant":               {nil, "", []string{"--config", path, "--channel", "chat:1", "--token", granted}, 0, "publish    yes  namespace chat:*: publish is open to grant\n"},
		"the token's expiry":    {nil, "", []string{"--config", path, "--channel", "chat:1", "--token", granted}, 0, "connect    yes  the token is valid until 2096-10-02T07:06:50Z\n"}, // the expiry plus the leeway
		"a token on stdin":      {nil, granted + "\n", []string{"--config", path, "--channel", "chat:1", "--token", "-", "--user", "alice"}, 0, "publish    yes"},
		"no user":               {nil, "", []string{"--config", path, "--channel", "chat:1"}, 0, "connect    no   a token is required\n  subscribe  no   namespace chat:*: subscribe is open to users, and the client has no user\n"},
		"presence is off":       {nil, "", []string{"--config", path, "--channel", "inbox:alice", "--user", "alice"}, 0, "presence   no   namespace inbox:{user}: presence is off\n"},
		"no namespace matches":  {nil, "", []string{"--config", path, "--channel", "news", "--user", "alice"}, 0, "subscribe  no   no namespace fits the name"},
		"an invalid channel":    {nil, "", []string{"--config", path, "--channel", "a b", "--user", "alice"}, 0, "subscribe  no   channel: character ' '"},
		"a system channel":      {nil, "", []string{"--channel", "$all"}, 0, "subscribe  no   it is a system channel"},
		"nothing is configured": {nil, "", []string{"--channel", "news"}, 0, "publish    yes  no keys and no namespaces are configured: publish is open to anyone\n"},
		"only keys":             {keyed, "", []string{"--channel", "news", "--user", "bob"}, 0, "publish    no   no namespaces are configured: publish is open to the backend only\n"},
		"anonymous":             {append(keyed, "SWITCHBOARD_AUTH_ANONYMOUS=true"), "", []string{"--channel", "news"}, 0, "connect    yes  auth.anonymous"},
		"another's token":       {nil, "", []string{"--config", path, "--channel", "chat:1", "--user", "bob", "--token", granted}, 1, "broker check: token: its user is alice, not bob\n"},
		"expired":               {nil, "", []string{"--config", path, "--channel", "chat:1", "--token", sign(t, jwt.MapClaims{"sub": "a", "exp": 1})}, 1, "broker check: token: the token has expired\n"},
		"forged":                {nil, "", []string{"--config", path, "--channel", "chat:1", "--token", granted + "x"}, 1, "broker check: token: bad token"},
		"a token without keys":  {nil, "", []string{"--channel", "chat:1", "--token", granted}, 1, "no token keys are configured"},
		"keys not reachable":    {[]string{"SWITCHBOARD_AUTH_JWKS_URL=http://127.0.0.1:1/"}, "", []string{"--channel", "a", "--token", granted}, 1, "broker check: auth.jwks_url: fetch keys: "},
		"a bad file":            {nil, "", []string{"--config", file(t, "namespaces: {x: 1}\n"), "--channel", "x"}, 1, "line 1: namespaces.x"},
		"no channel":            {nil, "", []string{"--user", "alice"}, 2, "--channel: missing"},
		"an unknown flag":       {nil, "", []string{"--chanel", "x"}, 2, "unknown flag: --chanel"},
		"help":                  {nil, "", []string{"--help"}, 0, configs.CheckHelp},
	} {
		code, stdout, stderr := command(c.stdin, c.environ, append([]string{"check"}, c.args...)...)
		if code != c.code || !strings.Contains(stdout+stderr, c.want) || (code == 0) != (stderr == "") {
			t.Errorf("%s: %d\n%s%s", name, code, stdout, stderr)
		}
		if strings.Contains(stdout+stderr, granted) || strings.Contains(stdout+stderr, tokenSecret) {
			t.Errorf("%s: the output contains a secret", name)
		}
	}
}

func TestCheckFields(t *testing.T) {
	path := file(t, rulesFile)
	_, out, _ := command("", nil, "check", "--config", path, "--user", "alice", "--channel", "room:1",
		"--field", "member/alice", "--field", "member/bob", "--field", "seat/A,1", "--field", "seat/A1", "--field", "p/7/hat", "--field", "$room")
	_, fields, _ := strings.Cut(out, "  durable    no   namespace room:*: durable is open to the backend only\n")
	if want := `  limits          state kept forever, an event for fields that end
  field      yes  member/alice: namespace room:*, fields member/{user}: write is open to users
                  the client owns it, 4 fields in member/, ends 15s after its owner has left
  field      no   member/bob: namespace room:*, fields member/{user}: the name has another user
  field      no   seat/A,1: field "seat/A,1": character ',' at byte 6 of the name is not allowed
  field      yes  seat/A1: namespace room:*, fields seat/*: write is open to claim
                  only the user who wrote it may change it, a lease of at most 10m0s, 256 bytes, 100 fields in seat/, stays after its owner has left
  field      yes  p/7/hat: namespace room:*, fields p/{n}/*: write is open to users
                  part of member/7: only the holder of that field may write it
  field      no   $room: namespace room:*: a field that begins with $ belongs to the backend
`; fields != want {
		t.Errorf("got %s", out)
	}
	if _, out, _ := command("", nil, "check", "--channel", "news", "--field", "a"); !strings.HasSuffix(out, "  field      yes  a: no keys and no namespaces are configured: write is open to anyone\n") {
		t.Errorf("got %s", out)
	}
}

func TestKeyCommand(t *testing.T) {
	code, out, _ := command("", nil, "key", "--scopes", "push,read", "--name", "billing")
	fields := strings.Fields(out)
	if code != 0 || len(fields) != 6 || fields[0] != "key:" || !strings.HasPrefix(fields[1], "swb_") || fields[4] != "push+read" || fields[5] != "billing" {
		t.Fatalf("%d %s", code, out)
	}
	entry := strings.TrimPrefix(strings.Split(out, "\n")[1], "entry: ")
	if code, out, _ := command(fields[1]+"\n", nil, "key", "--stdin", "--scopes", "push,read", "--name", "billing"); code != 0 || out != "entry: "+entry+"\n" {
		t.Errorf("%d %s, want %s", code, out, entry)
	}
	b, err := configs.LoadBroker(nil, []string{"SWITCHBOARD_AUTH_KEYS=" + entry + ",plain:other-key-as-it-is"})
	if err != nil {
		t.Fatal(err)
	}
	o, err := b.Options()
	if err != nil || o.Access.Keys.Len() != 2 {
		t.Fatalf("%v", err)
	}
	for scope, ok := range map[string]bool{"push": true, "read": true, "admin": false} {
		if (o.Access.Keys.Check("Bearer "+fields[1], scope) == nil) != ok {
			t.Errorf("%s: not %v", scope, ok)
		}
	}
	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"--scopes", "write"}, 1, `"write" is not a scope`},
		{[]string{"--scopes", ""}, 2, "--scopes: missing"},
		{[]string{"--name", "a b"}, 2, "--name"},
		{[]string{"--stdin"}, 1, "no key on the standard input"},
		{nil, 0, " push+read\n"},
		{[]string{"swb_x"}, 2, "belongs to no flag"},
		{[]string{"-h"}, 0, configs.KeyHelp},
	} {
		if code, stdout, stderr := command("", nil, append([]string{"key"}, c.args...)...); code != c.code || !strings.Contains(stdout+stderr, c.want) {
			t.Errorf("%v: %d %s%s", c.args, code, stdout, stderr)
		}
	}
}

// TestReloadBySignal adds and removes an API key while a broker runs.
func TestReloadBySignal(t *testing.T) {
	const first, second = "the-first-key-of-two", "the-second-key-of-two"
	keysFile := filepath.Join(t.TempDir(), "keys")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(keysFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("# the backend\nplain:" + first + "\n")
	p, url := start(t, []string{"SWITCHBOARD_AUTH_KEYS_FILE=" + keysFile})
	status := func(key string) int {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/v1/servers", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+key)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		return response.StatusCode
	}
	p.Await("an API key is configured in plain text")
	if status(first) != 200 || status(second) != 401 {
		t.Fatal("the first key is refused, or the second is accepted too early")
	}
	write("plain:" + first + "\n\n# the new key\nplain:" + second + "\n")
	p.Interrupt(syscall.SIGHUP)
	p.Await("reloaded API keys, token keys and namespaces")
	if status(first) != 200 || status(second) != 200 {
		t.Error("a key is refused during the rotation")
	}
	for _, bad := range []string{"", " \n", "sha256:x push\n", "plain:" + second + "\n" + first + "\n", "plain:x\n"} {
		write(bad)
		p.Interrupt(syscall.SIGHUP)
		p.Await("the reload failed")
		if status(second) != 200 {
			t.Errorf("%q: the failed reload changed the keys", bad)
		}
	}
	write("plain:" + second + "\n")
	p.Interrupt(syscall.SIGHUP)
	p.Await("reloaded API keys, token keys and namespaces")
	if status(first) != 401 || status(second) != 200 {
		t.Error("the first key is still accepted")
	}
	if strings.Contains(p.Tail(0), second) {
		t.Error("the log contains a key")
	}
}
