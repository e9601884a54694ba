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

// settings are the victim's. Nothing waits for long, so that the attacks on patience end soon, but a handshake may take
// long enough for ten thousand to be begun on a busy machine.
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
  "room:*": {subscribe: users, publish: users, presence: users, history: users}
  "chat:*": {subscribe: users, publish: grant, presence: grant, history: grant}
  "inbox:{user}": {subscribe: named, publish: named, presence: named, history: named}
`

// leavingKey is the line of the settings that a reload takes out.
const leavingKey = "    leaving: {alg: HS256, file: %s/leaving}"

// victim is a broker under attack.
type victim struct {
	*proc.Process
	dir       string
	more      [2]string // settings, at the top and in auth
	key       string    // of the API
	http, tcp string    // host:port
	client    *http.Client
}

func startVictim(ctx context.Context, t *testing.T, i *issuer, more, auth string) *victim {
	t.Helper()
	v := &victim{dir: t.TempDir(), more: [2]string{more, auth}, key: "the backend's " + rand.Text(), client: &http.Client{Transport: &http.Transport{}}}
	v.key = strings.ReplaceAll(v.key, " ", "-")
	for name, content := range map[string][]byte{
		"api_keys": []byte("# the backend\nplain:" + v.key), "shared": i.shared, "leaving": i.leaving, "public.pem": i.rsaPEM,
	} {
		v.write(t, name, content)
	}
	v.configure(t, true)
	cmd := exec.Command(brokerPath, "--config", filepath.Join(v.dir, "broker.yaml"), "--redis", redisServer.URL(),
		"--http", "127.0.0.1:0", "--tcp", "127.0.0.1:0", "--drain-time", "1s", "--log-format", "json")
	cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
	var err error
	if v.Process, err = proc.Start("broker", cmd, nil); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		v.Kill()
		if t.Failed() {
			t.Logf("the broker's last words:\n%s", v.Tail(30))
		}
		v.client.CloseIdleConnections()
	})
	for field, address := range map[string]*string{"http": &v.http, "tcp": &v.tcp} {
		if *address, err = v.Logged(ctx, "listening", field); err != nil {
			t.Fatal(err)
		}
	}
	await.NoError(ctx, t, "it is ready", func() error {
		if status, body := v.call(ctx, t, http.MethodGet, "/readyz", ""); status != http.StatusOK {
			return fmt.Errorf("%d %s", status, body)
		}
		return nil
	})
	return v
}

func (v *victim) write(t *testing.T, name string, content []byte) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(v.dir, name), content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// configure writes the settings, with the key that leaves or without.
func (v *victim) configure(t *testing.T, leaving bool) {
	t.Helper()
	key := ""
	if leaving {
		key = fmt.Sprintf(leavingKey, v.dir)
	}
	v.write(t, "broker.yaml", fmt.Appendf(nil, settings, v.dir, key, v.more[0], v.more[1]))
}

// reload has the broker read its settings again.
func (v *victim) reload(ctx context.Context, t *testing.T) {
	t.Helper()
	if err := v.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Logged(ctx, "API keys, token keys and namespaces are reloaded; other settings need a restart", "api_keys"); err != nil {
		t.Fatal(err)
	}
}

// request is a call of the API by the backend, or by who says that it is.
func (v *victim) request(ctx context.Context, method, path, key string, body io.Reader) (status int, answer string, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://"+v.http+path, body)
	if err != nil {
		return 0, "", err
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := v.client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, string(text), err
}

func (v *victim) call(ctx context.Context, t *testing.T, method, path, body string) (status int, answer string) {
	t.Helper()
	status, answer, err := v.request(ctx, method, path, v.key, strings.NewReader(body))
	if err != nil {
		t.Fatalf("%s %s: %v", method, path, err)
	}
	return status, answer
}

// metric is one number of /metrics, 0 when it is not there.
func (v *victim) metric(ctx context.Context, t *testing.T, name string) float64 {
	t.Helper()
	_, text := v.call(ctx, t, http.MethodGet, "/metrics", "")
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

// descriptors is how many the process has open.
func (v *victim) descriptors(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", v.PID()))
	if err != nil {
		t.Fatalf("the broker is gone: %v", err)
	}
	return len(entries)
}

var highWater = regexp.MustCompile(`VmHWM:\s+(\d+) kB`)

// peak is the most memory that the process has ever had resident, in bytes.
func (v *victim) peak(t *testing.T) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", v.PID()))
	if err != nil {
		t.Fatalf("the broker is gone: %v", err)
	}
	found := highWater.FindSubmatch(status)
	if found == nil {
		t.Fatalf("the broker is dead: %s", bytes.SplitN(status, []byte("\n"), 4)[2])
	}
	kb, err := strconv.Atoi(string(found[1]))
	if err != nil {
		t.Fatal(err)
	}
	return kb << 10
}
