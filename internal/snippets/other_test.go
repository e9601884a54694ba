package snippets

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"switchboard/internal/testbed"
)

// TestRedisConfig starts a Redis with each configuration.
func TestRedisConfig(t *testing.T) {
	for _, b := range blocksIn(t, "redis") {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		ready := make(chan struct{})
		cmd := exec.Command("redis-server", "-", "--port", "0", "--unixsocket", "redis.sock", "--appenddirname", "log")
		cmd.Dir, cmd.Stdin = t.TempDir(), strings.NewReader(b.code)
		var log []string
		p := testbed.Run(t, "redis-server", cmd, func(line []byte) {
			log = append(log, string(line))
			if strings.Contains(string(line), "ready to accept connections at") {
				close(ready)
			}
		})
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
