package redisurl

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redistest"
)

// startSentinel watches master under the name "mine" and returns the Sentinel's address.
func startSentinel(t *testing.T, master string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	_ = l.Close()
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
	admin := redis.NewSentinelClient(&redis.Options{Addr: addr, OnConnect: w.onConnect}) // as go-redis sets it, too
	defer admin.Close()
	if err := admin.Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	assertQuiet(t, w)

	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for admin.Failover(t.Context(), "mine").Err() != nil { // until the Sentinel knows the replica and it is in step
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("no failover")
		}
	}
	awaitNotice(t, client, w)
	if err := client.Set(t.Context(), "k", "after", 0).Err(); err != nil {
		t.Fatal(err)
	}
	if got := replica.Client(t).Get(t.Context(), "k").Val(); got != "after" {
		t.Fatalf("the promoted replica holds %q", got)
	}
}
