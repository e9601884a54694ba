package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/internal/testbed"
)

type pushed struct {
	Results []struct {
		Channel, User, Client string
		All                   bool
		ID                    int64
		Duplicate             bool
		Fields                map[string]int64
		Error                 *struct{ Code string }
	}
}

func TestPush(t *testing.T) {
	b := startBroker(t, nil)
	file := filepath.Join(t.TempDir(), "data")
	if err := os.WriteFile(file, []byte("[1,2]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	first := asJSON[pushed](t, b, "push", "news", `{"title":"hi"}`, "--key", "k").Results[0]
	if again := asJSON[pushed](t, b, "push", "news", "2", "--key", "k").Results[0]; !again.Duplicate || again.ID != first.ID {
		t.Errorf("the same key: %+v, then %+v", first, again)
	}
	b.ok(t, "push", "--channel", "news", "hello there")
	b.ok(t, "push", "news", "--file", file)
	b.ok(t, "push", "news", "--text", "7")
	if r := testbed.ExecuteInput(t, []string{"SWITCHBOARD_URL=" + b.url}, "{\"a\": 1}\n", binary, "push", "news"); r.Code != 0 {
		t.Errorf("from stdin: %+v", r)
	}
	if r := testbed.ExecuteInput(t, []string{"SWITCHBOARD_URL=" + b.url}, "one\n{\"n\":2}\n", binary, "push", "news", "--lines"); r.Code != 0 || strings.Count(r.Stdout, "\n") != 2 {
		t.Errorf("lines: %+v", r)
	}
	out := b.ok(t, "tail", "news", "--after=0", "--count=7")
	var data []string
	for line := range strings.Lines(out) {
		data = append(data, strings.Split(strings.TrimSpace(line), "\t")[2])
	}
	want := `{"title":"hi"}|"hello there"|[1,2]|"7"|{"a":1}|"one"|{"n":2}`
	if got := strings.Join(data, "|"); got != want {
		t.Errorf("the channel has %s, want %s", got, want)
	}

	if r := asJSON[pushed](t, b, "push", "--user", "alice", "1").Results; len(r) != 1 || r[0].User != "alice" {
		t.Errorf("a user: %+v", r)
	}
	if r := asJSON[pushed](t, b, "push", "--client", "alice/phone", "--client", "tab", "1", "--ttl=1h").Results; len(r) != 2 || r[0].Client != "alice/phone" {
		t.Errorf("clients: %+v", r)
	}
	if r := asJSON[pushed](t, b, "push", "--all", "noon").Results; len(r) != 1 || !r[0].All {
		t.Errorf("all: %+v", r)
	}
	if out := b.ok(t, "push", "--user", "nobody", "1"); !strings.Contains(out, "no devices") {
		t.Errorf("a user without devices: %q", out)
	}
}

// TestRefusedPush: the exit code and the error say why a push is refused.
func TestRefusedPush(t *testing.T) {
	b := startBroker(t, nil)
	turn := asJSON[pushed](t, b, "push", "room:7", "--set", `turn=amy`, "--add", "moves=1:0:2", "--if", "turn=absent", "--ttl=1h").Results[0]
	if turn.Fields["moves"] != 1 {
		t.Errorf("%+v", turn)
	}
	r := b.cli(t, "push", "room:7", "--set", "turn=bob", "--if", "turn=absent")
	if r.Code != exitConflict || !strings.Contains(r.Stderr, "conflict") || !strings.Contains(r.Stderr, `"amy"`) {
		t.Errorf("a conflict: %+v", r)
	}
	if r := b.cli(t, "push", "room:7", "--add", "moves=5:0:2"); r.Code != exitConflict {
		t.Errorf("out of bounds: %+v", r)
	}
	b.ok(t, "push", "room:7", "--set", "turn=bob", "--if", "turn="+number(turn.ID), "--touch", "moves", "--del", "none", `{"move":1}`)
	if r := b.cli(t, "push", "room:7", "--touch", "none"); r.Code != exitNotFound {
		t.Errorf("an absent field: %+v", r)
	}
	r = b.cli(t, "push", "--channel", "news", "--channel", "a b", "1")
	if r.Code != exitUsage || !strings.HasPrefix(r.Stdout, "news\t") || !strings.Contains(r.Stderr, "not allowed") {
		t.Errorf("one of two channels: %+v", r)
	}
	if r := b.cli(t, "push", "news", "1", "--durable"); r.Code != exitUsage || !strings.Contains(r.Stderr, "durable") {
		t.Errorf("durable in memory: %+v", r)
	}
}

// TestKeys: the key comes from the environment or a file, and the errors say what is missing.
func TestKeys(t *testing.T) {
	made := testbed.Execute(t, nil, binary, "key", "--scopes=read", "--name=reader")
	key, entry, _ := strings.Cut(made.Stdout, "\n")
	entry = strings.TrimSpace(strings.TrimPrefix(entry, "entry:"))
	b := startBroker(t, []string{"SWITCHBOARD_AUTH_KEYS=" + entry})
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte(made.Stdout), 0o600); err != nil {
		t.Fatal(err)
	}
	secret := strings.TrimSpace(strings.TrimPrefix(key, "key:"))
	url := "SWITCHBOARD_URL=" + b.url
	for _, tt := range []struct {
		environ []string
		args    []string
		code    int
		want    string // in stderr
	}{
		{[]string{url}, []string{"who"}, exitForbidden, "needs an API key"},
		{[]string{url, "SWITCHBOARD_KEY=" + secret}, []string{"who"}, exitOK, ""},
		{[]string{url, "SWITCHBOARD_KEY_FILE=" + file}, []string{"who"}, exitOK, ""},
		{[]string{url, "SWITCHBOARD_KEY=other"}, []string{"who", "--key-file", file}, exitOK, ""},
		{[]string{url, "SWITCHBOARD_KEY=" + secret + "x"}, []string{"who"}, exitForbidden, "does not know this key"},
		{[]string{url, "SWITCHBOARD_KEY=" + entry}, []string{"who"}, exitFailed, "calls need the key itself"},
		{[]string{url}, []string{"who", "--api-key", secret}, exitOK, "every user of this machine"},
		{[]string{url, "SWITCHBOARD_KEY=" + secret}, []string{"push", "news", "1"}, exitForbidden, "scope"},
		{[]string{url}, []string{"who", "--key-file", "/nowhere"}, exitFailed, "/nowhere"},
	} {
		r := testbed.Execute(t, tt.environ, binary, tt.args...)
		if r.Code != tt.code || !strings.Contains(r.Stderr, tt.want) || tt.want == "" && r.Stderr != "" || strings.Contains(r.Stderr, secret) {
			t.Errorf("%v: %+v, want %d and %q", tt.args, r, tt.code, tt.want)
		}
	}
}
