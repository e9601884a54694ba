//go:build long

package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redistest"
)

// An instance is a broker process.
type instance struct {
	*process
	id        string // server id
	http, tcp string // host:port
}

// A deployment is all server processes.
type deployment struct {
	redis   *redis.Client // nil if the test has started Redis
	brokers []*instance
	janitor *process
}

// deployOptions changes a deployment.
type deployOptions struct {
	env          []string // more variables of the brokers
	defaultTimes bool     // leases and the janitor have the times of production
	redis        string   // URL of the Redis; "" starts one
	webhooks     []string // variables of the brokers and of the janitor
}

// deploy starts Redis, n brokers and a janitor. Leases are short, so that the others notice the
// death of a broker within seconds. env are more variables of the brokers.
func deploy(ctx context.Context, t testing.TB, n int, env ...string) *deployment {
	t.Helper()
	return deployWith(ctx, t, n, deployOptions{env: env})
}

func deployWith(ctx context.Context, t testing.TB, n int, o deployOptions) *deployment {
	t.Helper()
	d := new(deployment)
	if o.redis == "" {
		server := redistest.Start(t)
		o.redis, d.redis = server.URL(), server.Client(t)
	}
	for i := range n {
		name := fmt.Sprintf("b%d", i)
		cmd := command("broker", "--name", name, "--redis", o.redis, "--http", "127.0.0.1:0", "--tcp", "127.0.0.1:0",
			"--log-format", "json")
		cmd.Env = slices.Concat(cmd.Env, o.env, o.webhooks)
		d.brokers = append(d.brokers, &instance{process: start(t, name, cmd, nil)})
	}
	args := []string{"--redis", o.redis, "--log-format", "json"}
	if !o.defaultTimes {
		args = append(args, "--servers-every", "300ms", "--queues-every", "300ms")
	}
	cmd := command("janitor", args...)
	cmd.Env = append(cmd.Env, o.webhooks...)
	d.janitor = start(t, "janitor", cmd, nil)
	for _, b := range d.brokers {
		b.awaitPorts(ctx, t)
		b.id = b.logged(ctx, t, "joined", "server")
	}
	return d
}

// awaitPorts waits until the broker listens.
func (b *instance) awaitPorts(ctx context.Context, t testing.TB) {
	t.Helper()
	b.http = b.logged(ctx, t, "listening", "http")
	b.tcp = b.logged(ctx, t, "listening", "tcp")
}

func command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(binaries, name), args...)
	// Not the whole environment: it may contain settings.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "SWITCHBOARD_TIMES_BEAT=400ms"}
	return cmd
}
