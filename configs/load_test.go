package configs

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/events"
	"switchboard/internal/setting"
)

func TestPrecedence(t *testing.T) {
	const yaml = "http: file:1\ndrain_time: 3s\nlimits: {message: 300}\nauth: {keys: [f1, f2]}\n"
	both := []string{"SWITCHBOARD_HTTP=env:1", "SWITCHBOARD_DRAIN_TIME=4s", "SWITCHBOARD_LIMITS_MESSAGE=400", "SWITCHBOARD_AUTH_KEYS= e1, e2 ,e3"}
	tests := []struct {
		name  string
		file  string
		env   []string
		args  []string
		http  string
		drain time.Duration
		bytes int
		keys  []Secret
	}{
		{"defaults", "", nil, nil, "127.0.0.1:8080", 10 * time.Second, 64 << 10, nil},
		{"file", yaml, nil, nil, "file:1", 3 * time.Second, 300, []Secret{"f1", "f2"}},
		{"environment over file", yaml, both, nil, "env:1", 4 * time.Second, 400, []Secret{"e1", "e2", "e3"}},
		{"flags over both", yaml, both, []string{"--http", "flag:1", "--drain-time=5s"}, "flag:1", 5 * time.Second, 400, []Secret{"e1", "e2", "e3"}},
		{"flag over file alone", yaml, nil, []string{"--http", "flag:1"}, "flag:1", 3 * time.Second, 300, []Secret{"f1", "f2"}},
		{"flag with the default's value", yaml, both, []string{"--drain-time=10s"}, "env:1", 10 * time.Second, 400, []Secret{"e1", "e2", "e3"}},
		{"an empty variable counts as unset", yaml, []string{"SWITCHBOARD_HTTP=", "SWITCHBOARD_AUTH_KEYS="}, nil, "file:1", 3 * time.Second, 300, []Secret{"f1", "f2"}},
		{"sections that are all comment", "auth:\nlimits:\n", both[2:], nil, "127.0.0.1:8080", 10 * time.Second, 400, []Secret{"e1", "e2", "e3"}},
		{"an empty list in the environment", yaml, []string{"SWITCHBOARD_AUTH_KEYS=,"}, nil, "file:1", 3 * time.Second, 300, nil},
		{"anchors", "http: &a file:1\nauth: {keys: &k [*a, f2], audience: *k}\nlimits: {message: 0x12c}\ndrain_time: '3s'\n", nil, nil, "file:1", 3 * time.Second, 300, []Secret{"file:1", "f2"}},
		{"a file of comments", "# nothing\n", nil, nil, "127.0.0.1:8080", 10 * time.Second, 64 << 10, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			args := tt.args
			if tt.file != "" {
				args = append([]string{"--config", write(t, "b.yaml", tt.file)}, args...)
			}
			b, err := LoadBroker(args, tt.env)
			if err != nil {
				t.Fatal(err)
			}
			if b.Listen.HTTP != tt.http || b.Times.Drain != tt.drain || b.Limits.Message != tt.bytes || !slices.Equal(b.Auth.Keys, tt.keys) {
				t.Errorf("got %s, %s, %d, %d keys", b.Listen.HTTP, b.Times.Drain, b.Limits.Message, len(b.Auth.Keys))
			}
			if b.Listen.TCP != DefaultBroker().Listen.TCP || b.Limits.Channels != 128 {
				t.Errorf("other settings have changed: %s, %d", b.Listen.TCP, b.Limits.Channels)
			}
		})
	}
}

func TestConfigFileFromEnvironment(t *testing.T) {
	path := write(t, "b.yaml", "name: fromfile\n")
	other := write(t, "other.yaml", "name: other\n")
	b, err := LoadBroker(nil, []string{"SWITCHBOARD_CONFIG=" + path})
	if err != nil || b.Name != "fromfile" {
		t.Errorf("got %q, %v", b.Name, err)
	}
	b, err = LoadBroker([]string{"--config", other}, []string{"SWITCHBOARD_CONFIG=" + path})
	if err != nil || b.Name != "other" {
		t.Errorf("the flag must win: got %q, %v", b.Name, err)
	}
}

func TestBadFile(t *testing.T) {
	tests := []struct{ name, yaml, want string }{
		{"unknown key", "http: a:1\nhtpp: b:2\n", "line 2: unknown key htpp"},
		{"unknown key in a section", "limits:\n  message: 1\n  mesage: 2\n", "line 3: unknown key limits.mesage"},
		{"unknown section", "limit:\n  message: 1\n", "line 1: unknown key limit"},
		{"a dotted key", "limits.message: 5\n", "line 1: unknown key limits.message"},
		{"key of the other program", "servers_every: 3s\n", "unknown key servers_every"},
		{"given twice", "http: a:1\nhttp: b:1\n", "line 2: http: it is given twice"},
		{"given twice in a section", "limits:\n  message: 1\n  message: 2\n", "line 3: limits.message: it is given twice"},
		{"a section given twice", "limits: {message: 1}\nlimits: {batch: 2}\n", "line 2: limits: it is given twice"},
		{"text for a number", "limits:\n  message: many\n", "line 2: limits.message: want a whole number"},
		{"fraction for a number", "max_connections: 1.5\n", "max_connections: want a whole number"},
		{"too large", "limits: {message: 9999999999999999999}\n", "limits.message: 9999999999999999999 is too large"},
		{"zero", "limits: {message: 0}\n", "limits.message: want more than zero"},
		{"below zero", "max_connections: -1\n", "max_connections: want zero or more, got -1"},
		{"number for a duration", "times: {beat: 2}\n", "times.beat: want a duration like 2s"},
		{"position_ttl too short", "times: {position_ttl: 30m}\n", "times.position_ttl: 30m0s: want at least 1h"},
		{"unknown clients for requests", "requests: {allow: grant}\n", `requests.allow: want anyone, users or nobody, got "grant"`},
		{"zero duration", "drain_time: 0s\n", "drain_time: want more than zero"},
		{"text for yes or no", "insecure: \"yes\"\n", "insecure: want true or false"},
		{"number for text", "peer_secret: 31337\n", "peer_secret: want text; put"},
		{"list for text", "http: [a]\n", "http: want one value"},
		{"text for a list", "auth: {keys: " + testSecret + "}\n", "auth.keys: want a list"},
		{"number in a list", "auth: {keys: [31337]}\n", "auth.keys: want a list of texts"},
		{"text for a section", "auth: " + testSecret + "\n", "auth: want settings as key: value"},
		{"no value", "http:\n", "http: there is no value"},
		{"no such level", "log_level: loud\n", "log_level: want trace, debug, info, warn or error"},
		{"a list on top", "- http\n", "line 1: want settings as key: value"},
		{"not YAML", "http: [\n", "line "},
		{"an anchor that is a secret", "peer_secret: *" + testSecret + "\n", "needs quotes"},
		{"both a secret and its file", "peer_secret: " + testSecret + "\npeer_secret_file: f\n", "peer_secret and peer_secret_file: both are given"},
		{"braces in the prefix", "prefix: \"{a}\"\n", "brace"},
		{"an invalid name", "name: a:b\n", "name: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := LoadBroker([]string{"--config", write(t, "broker.yaml", tt.yaml)}, nil)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Fatalf("got %v, want %q in it", err, tt.want)
			}
			if _, usage := errors.AsType[UsageError](err); usage {
				t.Error("an error in a file must not be a usage error")
			}
			for _, secret := range []string{testSecret, "31337", "\n"} {
				if strings.Contains(err.Error(), secret) {
					t.Errorf("%q is in %q", secret, err)
				}
			}
		})
	}
}

func TestMissingFile(t *testing.T) {
	_, err := LoadBroker([]string{"--config", "nowhere.yaml"}, nil)
	if err == nil || err.Error() != "nowhere.yaml: no such file or directory" {
		t.Errorf("got %v", err)
	}
}

func TestBadEnvironment(t *testing.T) {
	for variable, want := range map[string]string{
		"SWITCHBOARD_TIMES_BEAT=2":        "SWITCHBOARD_TIMES_BEAT: want a duration",
		"SWITCHBOARD_LIMITS_BATCH=x":      "SWITCHBOARD_LIMITS_BATCH: want a whole number",
		"SWITCHBOARD_INSECURE=maybe":      "SWITCHBOARD_INSECURE: want true or false",
		"SWITCHBOARD_LOG_FORMAT=xml":      "SWITCHBOARD_LOG_FORMAT: want auto, json or console",
		"SWITCHBOARD_AUTH_LEEWAY=-1s":     "SWITCHBOARD_AUTH_LEEWAY: want zero or more",
		"SWITCHBOARD_REQUESTS_QUEUES=1e9": "SWITCHBOARD_REQUESTS_QUEUES: want a whole number",
	} {
		if _, err := LoadBroker(nil, []string{variable}); err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%s: got %v", variable, err)
		}
	}
}

func TestUnknownVariables(t *testing.T) {
	environ := []string{
		"SWITCHBOARD_AUTH_KEY=" + testSecret, "SWITCHBOARD_JANITOR_HTPP=x", "HOME=/root", "SWITCHBOARD_JANITOR_MAX_AGE=1m",
		"SWITCHBOARD_PORT=tcp://10.0.0.1:80", "SWITCHBOARD_SERVICE_HOST=10.0.0.1", "SWITCHBOARD_PORT_80_TCP_ADDR=10.0.0.1",
		"SWITCHBOARD_REDIS=redis://h", "SWITCHBOARD_URL=http://h", "SWITCHBOARD_KEY=" + testSecret, "SWITCHBOARD_KEY_FILE=k",
		"SWITCHBOARD_TOKEN=" + testSecret, "SWITCHBOARD_TOKEN_FILE=t", "SWITCHBOARD_CA_FILE=c", "SWITCHBOARD_PROFILE=p", "SWITCHBOARD_PROFILES=f",
	}
	b, err := LoadBroker(nil, environ)
	if want := []string{"SWITCHBOARD_AUTH_KEY"}; err != nil || !slices.Equal(b.Unknown, want) {
		t.Errorf("got %v, %v", b.Unknown, err)
	}
	j, err := LoadJanitor(nil, environ)
	if want := []string{"SWITCHBOARD_JANITOR_HTPP"}; err != nil || !slices.Equal(j.Unknown, want) {
		t.Errorf("got %v, %v", j.Unknown, err)
	}
	if j.Options.MaxAge != time.Minute || j.Redis != "redis://h" {
		t.Errorf("max age %v", j.Options.MaxAge)
	}
}

func TestUsage(t *testing.T) {
	tests := []struct {
		args []string
		want string
	}{
		{[]string{"--htpp", "a:1"}, "unknown flag: --htpp"},
		{[]string{"--peer-secret", testSecret}, "unknown flag: --peer-secret"},
		{[]string{"--peer-secret=" + testSecret}, "unknown flag: --peer-secret"},
		{[]string{"-redis=redis://:" + testSecret + "@h"}, "unknown flag: -r; flags begin with two dashes"},
		{[]string{"--=" + testSecret}, "an argument begins with dashes"},
		{[]string{"redis://:" + testSecret + "@h"}, "there is an argument that belongs to no flag"},
		{[]string{"--http"}, "flag needs an argument: --http"},
		{[]string{"--drain-time", "soon"}, "--drain-time: want a duration like 2s"},
		{[]string{"--max-connections", "lots"}, "--max-connections: want a whole number"},
		{[]string{"--log-level=loud"}, "--log-level: want trace, debug, info, warn or error"},
		{[]string{"--insecure=perhaps"}, "--insecure: want true or false"},
	}
	for _, tt := range tests {
		_, err := LoadBroker(tt.args, nil)
		if _, usage := errors.AsType[UsageError](err); !usage || !strings.HasPrefix(err.Error(), tt.want) || strings.Contains(err.Error(), testSecret) {
			t.Errorf("%v: got %v, want %q", tt.args, err, tt.want)
		}
	}
	if _, err := LoadJanitor(nil, nil); err == nil || !strings.HasPrefix(err.Error(), "--redis: missing") {
		t.Errorf("a janitor without Redis: %v", err)
	}
}

func TestHelpAndVersionWin(t *testing.T) {
	for arg, want := range map[string]error{"--help": ErrHelp, "-h": ErrHelp, "--version": ErrVersion} {
		if _, err := LoadBroker([]string{"--config", "nowhere", arg}, []string{"SWITCHBOARD_TIMES_BEAT=x"}); !errors.Is(err, want) {
			t.Errorf("broker %s: %v", arg, err)
		}
		if _, err := LoadJanitor([]string{arg}, nil); !errors.Is(err, want) {
			t.Errorf("janitor %s: %v", arg, err)
		}
	}
}

func TestSecretsAreNotPrinted(t *testing.T) {
	b := DefaultBroker()
	b.Redis, b.PeerSecret, b.Auth.HS256Secret, b.Auth.Keys = testSecret, testSecret, testSecret, []Secret{testSecret}
	text, err := json.Marshal(b)
	if err != nil {
		t.Fatal(err)
	}
	anyVerb := "%d" // a variable, since go vet reports such a verb for text
	for _, printed := range []string{string(text), fmt.Sprint(b), fmt.Sprintf("%+v", b), fmt.Sprintf("%#v", b), fmt.Sprintf("%s %q %x", b.Redis, b.Redis, b.Redis), fmt.Sprintf(anyVerb, b.Redis)} {
		if strings.Contains(printed, testSecret) || strings.Contains(printed, fmt.Sprintf("%x", testSecret)) {
			t.Errorf("the secret is in %s", printed)
		}
	}
}

func TestEveryFieldIsDescribed(t *testing.T) {
	for _, p := range []*program{brokerProgram, janitorProgram} {
		known := map[string]bool{}
		for _, s := range setting.Of(p.defaults) {
			known[s.Key] = true
		}
		seen, names := map[string]bool{}, map[string]bool{}
		for _, s := range p.rows() {
			seen[s.Key], names[p.env(s.Key)] = true, true
			if s.text == "" || s.Flag && s.Arg == "" && s.Type.Kind() != reflect.Bool {
				t.Errorf("%s: %s has no text or no argument", p.name, s.Key)
			}
		}
		for key := range known {
			if !seen[key] {
				t.Errorf("%s: %s is not described", p.name, key)
			}
		}
		if len(seen) != len(known) || len(names) != len(known) {
			t.Errorf("%s: %d fields, %d keys, %d variables", p.name, len(known), len(seen), len(names))
		}
	}
}

// TestKindsOfEvents compares the permitted kinds of events, which are in a tag, with all kinds.
func TestKindsOfEvents(t *testing.T) {
	for _, r := range brokerProgram.rows() {
		if want := fmt.Sprint(events.Kinds); r.Key == "webhooks.events" && fmt.Sprint(r.Choices) != want {
			t.Errorf("got %v, want %s", r.Choices, want)
		}
	}
}

func TestWebhooks(t *testing.T) {
	secrets := write(t, "secrets", testSecret+"\n# before:\nthe secret before\n")
	const yaml = "webhooks:\n  url: https://h/x\n  events: [user_offline, message_undelivered]\n  max_age: 1h\n"
	b, err := LoadBroker([]string{"--config", write(t, "b.yaml", yaml)}, []string{"SWITCHBOARD_WEBHOOKS_SECRETS_FILE=" + secrets})
	if err != nil {
		t.Fatal(err)
	}
	j, err := LoadJanitor([]string{"--redis", "redis://h", "--config", write(t, "j.yaml", yaml)},
		[]string{"SWITCHBOARD_WEBHOOKS_SECRETS_FILE=" + secrets, "SWITCHBOARD_JANITOR_WEBHOOKS_URL=x"})
	if err != nil || !slices.Equal(j.Unknown, []string{"SWITCHBOARD_JANITOR_WEBHOOKS_URL"}) {
		t.Fatal(err, j.Unknown)
	}
	if !reflect.DeepEqual(b.Webhooks, j.Webhooks) {
		t.Errorf("the same file means %+v to the broker and %+v to the janitor", b.Webhooks, j.Webhooks)
	}
	sender, err := j.Webhooks.Sender()
	if err != nil || sender.URL != "https://h/x" || !slices.Equal(sender.Secrets, []string{testSecret, "the secret before"}) || sender.Timeout != 10*time.Second {
		t.Errorf("%v, %v", sender.Timeout, err)
	}
	if d := j.Webhooks.Dispatcher(); len(d.Wanted) != 2 || d.MaxAge != time.Hour || d.Batch != 100 || !j.Webhooks.Enabled() {
		t.Errorf("%+v", d)
	}
	if w := DefaultBroker().Webhooks; w.Enabled() || w.Kinds() != nil {
		t.Error("without a URL there are events")
	}
	for _, tt := range []struct{ yaml, want string }{
		{"webhooks: {events: [user_online, user_left]}", `webhooks.events: want user_online, user_offline, channel_occupied, channel_vacated, message_undelivered, fields_gone, hold_expired or room_ended, got "user_left"`},
		{"webhooks: {secrets: [a], secrets_file: b}", "webhooks.secrets and webhooks.secrets_file: both are given"},
		{"webhooks: {batch: 0}", "webhooks.batch: want more than zero"},
	} {
		_, err := LoadBroker([]string{"--config", write(t, "b.yaml", tt.yaml)}, nil)
		_, same := LoadJanitor([]string{"--redis", "redis://h", "--config", write(t, "j.yaml", tt.yaml)}, nil)
		if err == nil || !strings.Contains(err.Error(), tt.want) || same == nil || !strings.Contains(same.Error(), tt.want) {
			t.Errorf("%s: %v and %v", tt.yaml, err, same)
		}
	}
	if _, err := LoadJanitor([]string{"--redis", "redis://h", "--retry"}, nil); err == nil || err.Error() != "--retry: needs --dead-letters" {
		t.Errorf("got %v", err)
	}
	if text := fmt.Sprintf("%v %+v %#v", b, b, b); strings.Contains(text, "h/x") {
		t.Error("the URL can be printed")
	}
}
