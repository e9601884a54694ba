//go:build long

package attack

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"switchboard/internal/testbed"
)

// settings are those of the broker. The timeouts are short, so that attacks with slow connections
// end soon. The connect timeout must suffice for halfOpenConnections handshakes on a busy machine.
const settings = `
compression: true
%[3]s
auth:
  keys_file: %[1]s/api_keys
  audience: [broker]
  issuer: [login]
  leeway: 0s
%[4]s
  rs256_keys_file: %[1]s/public.pem
  token_keys:
    shared: {alg: HS256, file: %[1]s/shared}
    public: {alg: RS256, file: %[1]s/public.pem}
%[2]s
times: {connect: 15s, slow: 6s, ping: 8s}
namespaces:
  "hall:*": {subscribe: users, publish: users, presence: users, history: users}
  "chat:*": {subscribe: users, publish: grant, presence: grant, history: grant}
  "open:*": {subscribe: anyone, publish: anyone}
  "inbox:{user}": {subscribe: named, publish: named, presence: named, history: named}
  "state:*":
    {subscribe: users, publish: users, history: users, state: users, fields: {"seat/{n}": {write: users, max: 60}, "x": {write: users}}}
`

// revocableLine is the line of the settings that configure leaves out to revoke a key.
const revocableLine = "    revocable: {alg: HS256, file: %s/revocable}"

// A broker is a broker process under attack.
type broker struct {
	*testbed.Broker
	dir  string
	more [2]string // additional settings: at the top level, in section auth
}

func startBroker(ctx context.Context, t *testing.T, i *issuer, more, auth string) *broker {
	t.Helper()
	b := &broker{dir: t.TempDir(), more: [2]string{more, auth}}
	b.Broker = &testbed.Broker{
		Program: testbed.Program{
			Name: "broker", Path: brokerPath,
			Args: []string{"--config", filepath.Join(b.dir, "broker.yaml"), "--redis", redisServer.URL(), "--drain-time", "1s"},
		},
		API: testbed.API{Key: "the-backend-" + rand.Text(), Client: &http.Client{Transport: &http.Transport{}}},
	}
	for name, content := range map[string][]byte{
		"api_keys": []byte("# the backend\nplain:" + b.Key), "shared": i.shared, "revocable": i.revocable, "public.pem": i.rsaPEM,
	} {
		b.write(t, name, content)
	}
	b.configure(t, true)
	t.Cleanup(b.Client.CloseIdleConnections)
	testbed.RunBroker(t, b.Broker)
	if err := b.AwaitReady(ctx); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *broker) write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(b.dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// configure writes the settings, with or without the key that can be revoked.
func (b *broker) configure(t *testing.T, withRevocable bool) {
	t.Helper()
	key := ""
	if withRevocable {
		key = fmt.Sprintf(revocableLine, b.dir)
	}
	b.write(t, "broker.yaml", fmt.Appendf(nil, settings, b.dir, key, b.more[0], b.more[1]))
}

// reload makes the broker read its settings again.
func (b *broker) reload(ctx context.Context, t *testing.T) {
	t.Helper()
	if err := b.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if _, err := b.Logged(ctx, "reloaded API keys, token keys and namespaces; other settings need a restart", "api_keys"); err != nil {
		t.Fatal(err)
	}
}

// request makes an API call with any key, or without one if key is empty.
func (b *broker) request(ctx context.Context, method, path, key string, body any) (status int, answer string, err error) {
	return testbed.API{HTTP: b.HTTP, Key: key, Client: b.Client}.Do(ctx, method, path, body)
}

func (b *broker) call(ctx context.Context, t *testing.T, method, path, body string) (status int, answer string) {
	t.Helper()
	status, answer, err := b.request(ctx, method, path, b.Key, strings.NewReader(body))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return status, answer
}

// metric returns the value of one metric, or 0 if /metrics does not have it.
func (b *broker) metric(ctx context.Context, t *testing.T, name string) float64 {
	t.Helper()
	_, text := b.call(ctx, t, http.MethodGet, "/metrics", "")
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			number, err := strconv.ParseFloat(strings.TrimSpace(value), 64)
			if err != nil {
				t.Fatal(err)
			}
			return number
		}
	}
	return 0
}

// descriptors returns the number of open file descriptors of the process.
func (b *broker) descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", b.PID()))
	if err != nil {
		t.Fatalf("the broker has ended: %v", err)
	}
	return len(entries)
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak returns the largest resident memory that the process has had, in bytes.
func (b *broker) peak(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", b.PID()))
	if err != nil {
		t.Fatalf("the broker has ended: %v", err)
	}
	found := highWater.FindSubmatch(status)
	if found == nil {
		t.Fatalf("the broker has ended: %s", bytes.SplitN(status, []byte("\n"), 4)[2])
	}
	kb, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}
