package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
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
	redis   *redis.Client
	brokers []*instance
	janitor *process
}

// deploy starts Redis, n brokers and a janitor. Leases are short, so that the others notice the
// death of a broker within seconds. settings are more environment variables of the brokers.
func deploy(ctx context.Context, t *testing.T, n int, settings ...string) *deployment {
	t.Helper()
	server := redistest.Start(t)
	d := &deployment{redis: server.Client(t)}
	for i := range n {
		name := fmt.Sprintf("b%d", i)
		cmd := command("broker", "--name", name, "--redis", server.URL(), "--http", "127.0.0.1:0", "--tcp", "127.0.0.1:0",
			"--log-format", "json")
		cmd.Env = append(cmd.Env, settings...)
		d.brokers = append(d.brokers, &instance{process: start(t, name, cmd, nil)})
	}
	d.janitor = start(t, "janitor", command("janitor", "--redis", server.URL(),
		"--servers-every", "300ms", "--queues-every", "300ms", "--log-format", "json"), nil)
	for _, b := range d.brokers {
		b.http = b.logged(ctx, t, "listening", "http")
		b.tcp = b.logged(ctx, t, "listening", "tcp")
		b.id = b.logged(ctx, t, "joined", "server")
	}
	return d
}

func command(name string, args ...string) *exec.Cmd {
	cmd := exec.Command(filepath.Join(binaries, name), args...)
	// Not the whole environment: it may contain settings.
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "SWITCHBOARD_TIMES_BEAT=400ms"}
	return cmd
}
