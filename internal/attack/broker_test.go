//go:build long

package attack

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"switchboard/internal/await"
	"switchboard/internal/proc"
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
	*proc.Process
	dir       string
	more      [2]string // additional settings: at the top level, in section auth
	key       string    // of the API
	http, tcp string    // host:port
	client    *http.Client
}

func startBroker(ctx context.Context, t *testing.T, i *issuer, more, auth string) *broker {
	t.Helper()
	b := &broker{dir: t.TempDir(), more: [2]string{more, auth}, key: "the-backend-" + rand.Text(), client: &http.Client{Transport: &http.Transport{}}}
	for name, content := range map[string][]byte{
		"api_keys": []byte("# the backend\nplain:" + b.key), "shared": i.shared, "revocable": i.revocable, "public.pem": i.rsaPEM,
	} {
		b.write(t, name, content)
	}
	b.configure(t, true)
	cmd := exec.Command(brokerPath, "--config", filepath.Join(b.dir, "broker.yaml"), "--redis", redisServer.URL(),
		"--http", "127.0.0.1:0", "--tcp", "127.0.0.1:0", "--drain-time", "1s", "--log-format", "json")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	var err error
	if b.Process, err = proc.Start("broker", cmd, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		b.Kill()
		if t.Failed() {
			t.Logf("log of the broker:\n%s", b.Tail(30))
		}
		b.client.CloseIdleConnections()
	})
	for field, address := range map[string]*string{"http": &b.http, "tcp": &b.tcp} {
		if *address, err = b.Logged(ctx, "listening", field); err != nil {
			t.Fatal(err)
		}
	}
	await.NoError(ctx, t, "readiness", func() error {
		if status, body := b.call(ctx, t, http.MethodGet, "/readyz", ""); status != http.StatusOK {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
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
func (b *broker) request(ctx context.Context, method, path, key string, body io.Reader) (status int, answer string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+b.http+path, body)
	if err != nil {
		return 0, "", err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := b.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

func (b *broker) call(ctx context.Context, t *testing.T, method, path, body string) (status int, answer string) {
	t.Helper()
	status, answer, err := b.request(ctx, method, path, b.key, strings.NewReader(body))
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
