//go:build long

package redisurl

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/await"
	"switchboard/internal/freeport"
	"switchboard/internal/redistest"
	"switchboard/internal/slots"
)

// startSentinel starts a Sentinel that monitors master as "mine", and returns its address.
func startSentinel(t *testing.T, master string) string {
	t.Helper()
	addr, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(master, ":")
	_, own, _ := strings.Cut(addr, ":")
	conf := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("port %s\nbind 127.0.0.1\nsentinel monitor mine %s %s 1\nsentinel down-after-milliseconds mine 1000\n", own, host, port)
	if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("redis-server", conf, "--sentinel")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	drained := make(chan struct{})
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-drained
		_ = cmd.Wait()
	})
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.Contains(lines.Text(), "+monitor master mine") {
	}
	go func() {
		_, _ = io.Copy(io.Discard, out)
		close(drained)
	}()
	return addr
}

func TestWatchSentinelFailover(t *testing.T) {
	master := redistest.Start(t)
	host, port, _ := strings.Cut(master.Addr, ":")
	replica := redistest.Start(t, "--replicaof", host+" "+port)
	addr := startSentinel(t, master.Addr)

	client, w := begin(t, "redis-sentinel://"+addr+"/mine")
	if err := CheckPolicy(t.Context(), client); err != nil {
		t.Fatal(err)
	}
	admin := redis.NewSentinelClient(&redis.Options{Addr: addr, OnConnect: w.onConnect}) // as go-redis connects to it
	defer admin.Close()
	if err := admin.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	assertUnchanged(t, w)

	// The Sentinel refuses until it knows the replica and the replica is in sync.
	await.NoError(t.Context(), t, "failover", func() error { return admin.Failover(t.Context(), "mine").Err() })
	if awaitChange(t, client, w, "beat") != slots.All() {
		t.Error("a failover by Sentinels does not concern all slots")
	}
	if err := client.Set(t.Context(), "k", "after", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := replica.Client(t).Get(t.Context(), "k").Val(); got != "after" {
		t.Fatalf("the promoted replica holds %q", got)
	}
}
