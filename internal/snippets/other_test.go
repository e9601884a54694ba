package snippets

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"switchboard/internal/proc"
)

// verifyInPython ends the block in Python: it verifies signatures as the page says.
const verifyInPython = `
body, now = b'{"events":[]}', str(int(time.time()))
def sign(secret, timestamp):
    return "v1=" + hmac.new(secret, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
def check(want, signature, timestamp=now):
    headers = {"Switchboard-Timestamp": timestamp, "Switchboard-Signature": signature}
    assert verify([b"secret"], headers, body) == want, headers
check(True, sign(b"secret", now))
check(True, sign(b"other", now) + "," + sign(b"secret", now))
check(False, sign(b"other", now))
check(False, sign(b"secret", "1794225600"), "1794225600")
check(False, "")
`

// TestPython runs the blocks in Python. All of them verify signatures.
func TestPython(t *testing.T) {
	for _, b := range blocksIn(t, "python") {
		out, err := exec.CommandContext(t.Context(), "python3", "-c", b.code+verifyInPython).CombinedOutput()
		if err != nil {
			t.Errorf("%s:%d: %v\n%s", b.page, b.line, err, out)
		}
	}
}

// TestRedisConfig starts a Redis with each configuration.
func TestRedisConfig(t *testing.T) {
	for _, b := range blocksIn(t, "redis") {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		ready := make(chan struct{})
		cmd := exec.Command("redis-server", "-", "--port", "0", "--unixsocket", "redis.sock", "--appenddirname", "log")
		cmd.Dir, cmd.Stdin = t.TempDir(), strings.NewReader(b.code)
		var log []string
		p, err := proc.Start("redis-server", cmd, func(line []byte) {
			log = append(log, string(line))
			if strings.Contains(string(line), "ready to accept connections at") {
				close(ready)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Kill)
		ended := make(chan struct{})
		go func() {
			_, _ = p.Wait(ctx)
			close(ended)
		}()
		select {
		case <-ready:
		case <-ended:
			t.Errorf("%s:%d: redis-server has ended: %s", b.page, b.line, fmt.Sprint(log))
		}
	}
}

// blocksIn returns all blocks in a language that are run.
func blocksIn(t *testing.T, language string) (blocks []block) {
	t.Helper()
	for _, page := range pages(t) {
		for _, b := range blocksOf(t, page) {
			if b.language == language && !skipped(b) {
				blocks = append(blocks, b)
			}
		}
	}
	return blocks
}
