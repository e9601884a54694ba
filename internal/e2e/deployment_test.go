//go:build long

package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redistest"
	"switchboard/internal/testbed"
)

// A deployment is all server processes.
type deployment struct {
	redis   *redis.Client // nil if the test has started Redis
	brokers []*testbed.Broker
	janitor *testbed.Program
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
func deploy(t testing.TB, n int, env ...string) *deployment {
	t.Helper()
	return deployWith(t, n, deployOptions{env: env})
}

func deployWith(t testing.TB, n int, o deployOptions) *deployment {
	t.Helper()
	d := new(deployment)
	if o.redis == "" {
		server := redistest.Start(t)
		o.redis, d.redis = server.URL(), server.Client(t)
	}
	for i := range n {
		d.brokers = append(d.brokers, startBroker(t, fmt.Sprintf("b%d", i), o.redis, slices.Concat(o.env, o.webhooks)))
	}
	var args []string
	if !o.defaultTimes {
		args = []string{"--servers-every", "300ms", "--queues-every", "300ms"}
	}
	d.janitor = startJanitor(t, o.redis, o.webhooks, args...)
	return d
}

// startBroker starts a broker on a Redis, or in memory if the URL is "".
func startBroker(t testing.TB, name, redisURL string, env []string, args ...string) *testbed.Broker {
	t.Helper()
	return testbed.RunBroker(t, &testbed.Broker{Program: program("broker", name, redisURL, env, args)})
}

func startJanitor(t testing.TB, redisURL string, env []string, args ...string) *testbed.Program {
	t.Helper()
	p := program("janitor", "janitor", redisURL, env, args)
	return testbed.RunProgram(t, &p)
}

func program(file, name, redisURL string, env, args []string) testbed.Program {
	if redisURL != "" {
		args = append([]string{"--redis", redisURL}, args...)
	}
	return testbed.Program{Name: name, Path: filepath.Join(binaries, file), Args: args, Env: append([]string{"SWITCHBOARD_TIMES_BEAT=400ms"}, env...)}
}

// end sends a signal and waits until the process ends.
func end(ctx context.Context, t testing.TB, p interface {
	End(context.Context, syscall.Signal) error
}, sig syscall.Signal) {
	t.Helper()
	if err := p.End(ctx, sig); err != nil {
		t.Fatal(err)
	}
}
