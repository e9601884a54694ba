package main

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/configs"
	"switchboard/internal/testbed"
)

var binary string

func TestMain(m *testing.M) {
	var dir string
	os.Exit(testbed.Main(&dir, func() int {
		binary = filepath.Join(dir, "broker")
		return m.Run()
	}, "."))
}

const secret = "hunter2"

func TestStartErrors(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	badKey := filepath.Join(t.TempDir(), "b.yaml")
	if err := os.WriteFile(badKey, []byte("http: 127.0.0.1:0\nhtpp: "+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	free := []string{"--http=127.0.0.1:0", "--tcp=127.0.0.1:0"}
	tests := []struct {
		name string
		args []string
		env  []string
		code int
		want string // part of the only line on stderr
	}{
		{"unknown flag", []string{"--htpp"}, nil, 2, "broker: unknown flag: --htpp; did you mean --http?\nTry broker --help.\n"},
		{"an argument", []string{"serve"}, nil, 2, "belongs to no flag"},
		{"bad level", []string{"--log-level=loud"}, nil, 2, "broker: --log-level: want trace"},
		{"bad key in the file", []string{"--config", badKey}, nil, 1, "b.yaml: line 2: unknown key htpp"},
		{"no such file", []string{"--config", "nowhere.yaml"}, nil, 1, "broker: nowhere.yaml: no such file"},
		{"bad variable", nil, []string{"SWITCHBOARD_TIMES_PING=25"}, 1, "broker: SWITCHBOARD_TIMES_PING: want a duration"},
		{"bad scheme", append(free, "--redis=http://:"+secret+"@localhost"), nil, 1, "broker: bad Redis URL: scheme: "},
		{"bad port", append(free, "--redis=redis://:"+secret+"@localhost:x"), nil, 1, "broker: bad Redis URL: host "},
		{"bad Redis URL in the environment", free, []string{"SWITCHBOARD_REDIS=redis://a:" + secret + "%@h"}, 1, "broker: bad Redis URL: user and password"},
		{"HTTP port taken", []string{"--tcp=off", "--http", taken.Addr().String()}, nil, 1, "broker: http: listen tcp " + taken.Addr().String()},
		{"TCP port taken", []string{"--http=127.0.0.1:0", "--tcp", taken.Addr().String()}, nil, 1, "broker: tcp: listener on " + taken.Addr().String()},
		{"not an address", []string{"--http=8080"}, nil, 1, "broker: http: "},
		{"open on a public address", []string{"--http=0.0.0.0:0", "--tcp=off"}, nil, 1, "broker: auth.keys: no API key"},
		{"no such secret file", free, []string{"SWITCHBOARD_PEER_SECRET_FILE=/nowhere"}, 1, "broker: peer_secret_file: open /nowhere"},
		{"a plain key", free, []string{"SWITCHBOARD_AUTH_KEYS=" + secret}, 1, "broker: auth.keys: entry 1 of 1: want the entry that `broker key` prints (sha256:…), or plain:<key>"},
		{"a short token secret", free, []string{"SWITCHBOARD_AUTH_HS256_SECRET=" + secret}, 1, "broker: auth.hs256_secret: entry 1 of 1: the secret has less than 32 bytes"},
		{"a hook in the clear", free, []string{"SWITCHBOARD_HOOKS_CONNECT=http://h/" + secret}, 1, "broker: hooks.connect: the scheme must be https"},
		{"a host with a port", free, []string{"SWITCHBOARD_HOSTS=h:80"}, 1, "broker: hosts: pattern"},
		{"webhooks in the clear", free, []string{"SWITCHBOARD_WEBHOOKS_URL=http://h/" + secret}, 1, "broker: webhook: URL: the scheme must be https"},
		{"webhooks without a secret", free, []string{"SWITCHBOARD_WEBHOOKS_URL=https://h/" + secret}, 1, "broker: webhook: a secret is missing"},
		{"two things wrong", []string{"--http=8080", "--tcp=x"}, nil, 1, "; tcp: "},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			r := testbed.Execute(t, tt.env, binary, tt.args...)
			lines := strings.Count(r.Stderr, "\n")
			if r.Code != tt.code || !strings.Contains(r.Stderr, tt.want) || lines != tt.code || r.Stdout != "" {
				t.Errorf("code %d, stdout %q, stderr %q", r.Code, r.Stdout, r.Stderr)
			}
			if strings.Contains(r.Stderr, secret) {
				t.Errorf("the secret is in %q", r.Stderr)
			}
		})
	}
}

func TestHelpAndVersion(t *testing.T) {
	if r := testbed.Execute(t, nil, binary, "--help"); r.Code != 0 || r.Stdout != configs.BrokerHelp() || r.Stderr != "" {
		t.Errorf("%+v", r)
	}
	if r := testbed.Execute(t, nil, binary, "--version"); r.Code != 0 || !strings.HasPrefix(r.Stdout, "broker ") || strings.Count(r.Stdout, "\n") != 1 {
		t.Errorf("%+v", r)
	}
}
