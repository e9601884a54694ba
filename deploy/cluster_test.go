//go:build deploy

package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/freeport"
	"switchboard/internal/redistest"
	"switchboard/internal/testbed"
)

// keptMessages are the messages of a channel that brokers and janitor keep: some clients are away
// for all of drain_time.
const keptMessages = 100_000

// cluster is three brokers and a janitor on one Redis, with a load balancer on loopback ports.
type cluster struct {
	t         *testing.T
	redis     *redistest.Server
	brokers   []*node
	web, line string // the load balancer's host:port of WebSocket and of TCP lines
	status    string // host:port of HAProxy's own pages
}

// node is one broker.
type node struct {
	name, http, tcp string
	redis           string // the URL of its Redis
	process         *testbed.Process
}

// balancer starts a load balancer with one of the files of this directory.
type balancer func(c *cluster) *testbed.Process

func startCluster(t *testing.T, lb balancer) *cluster {
	t.Helper()
	c := newCluster(t)
	c.startAll(lb)
	return c
}

// newCluster returns a cluster of which only Redis runs.
func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{t: t, redis: redistest.Start(t), web: address(t), line: address(t), status: address(t)}
	for i := range 3 {
		c.brokers = append(c.brokers, &node{name: fmt.Sprintf("b%d", i+1), http: address(t), tcp: address(t), redis: c.redis.URL()})
	}
	return c
}

// startAll starts everything else, and waits until the load balancer serves.
func (c *cluster) startAll(lb balancer) {
	t := c.t
	t.Helper()
	for _, n := range c.brokers {
		c.start(n)
	}
	c.run("janitor", "janitor", "--redis="+c.redis.URL(), "--http="+address(t), fmt.Sprintf("--max-messages=%d", keptMessages))
	process := lb(c)
	for _, n := range c.brokers {
		c.awaitReady(n)
	}
	ctx, cancel := context.WithTimeout(within(t), 10*time.Second)
	defer cancel()
	await.NoError(ctx, t, process.Name+" serves", func() error {
		resp, err := http.Get("http://" + c.web + "/")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return errors.New(resp.Status)
		}
		return nil
	})
}

func address(t *testing.T) string {
	t.Helper()
	addr, err := freeport.Address()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

// start starts a broker on its ports.
func (c *cluster) start(n *node) {
	c.t.Helper()
	config := writeFile(c.t, filepath.Join(c.t.TempDir(), n.name+".yaml"), fmt.Sprintf(`
limits:
  proxies: [127.0.0.1]
  proxy_protocol: [127.0.0.1]
  channel_messages: %d
drain_time: 4s
`, keptMessages))
	n.process = c.run(n.name, "broker", "--config="+config, "--name="+n.name, "--redis="+n.redis, "--http="+n.http, "--tcp="+n.tcp)
}

// run starts a program of this repository.
func (c *cluster) run(name, program string, args ...string) *testbed.Process {
	c.t.Helper()
	return c.execute(name, exec.Command(filepath.Join(bin, program), append(args, "--log-format=json")...))
}

// execute starts a command, which is killed at the end of the test.
func (c *cluster) execute(name string, cmd *exec.Cmd) *testbed.Process {
	c.t.Helper()
	return testbed.Run(c.t, name, cmd, nil)
}

// executeIn starts a program in a file system of its own, as the user of the image.
func (c *cluster) executeIn(root, program string, args ...string) *testbed.Process {
	c.t.Helper()
	cmd := exec.Command("chroot", append([]string{"--userspec=65532:65532", root, program}, append(args, "--log-format=json")...)...)
	cmd.Env = []string{"PATH=/usr/sbin"}
	return c.execute(program, cmd)
}

func (c *cluster) awaitReady(n *node) {
	c.t.Helper()
	c.awaitReadyz(n, http.StatusOK)
}

// awaitReadyz waits until /readyz of a broker answers with a status.
func (c *cluster) awaitReadyz(n *node, status int) {
	c.t.Helper()
	await.NoError(within(c.t), c.t, fmt.Sprintf("/readyz of %s is %d", n.name, status), func() error {
		resp, err := http.Get("http://" + n.http + "/readyz")
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != status {
			return fmt.Errorf("%s: %s", n.name, resp.Status)
		}
		return nil
	})
}

// call calls the API through the load balancer until it answers, and decodes the answer.
func (c *cluster) call(method, path, body string, answer any) {
	c.t.Helper()
	await.NoError(within(c.t), c.t, method+" "+path, func() error {
		return testbed.API{HTTP: c.web, Client: http.DefaultClient}.Call(c.t.Context(), method, path, body, answer)
	})
}

// pusher pushes numbers to a channel through the load balancer, until stop. It repeats a push that
// fails, with the same key.
type pusher struct {
	stop func() (pushed int)
}

func (c *cluster) push(channel string) pusher {
	done := make(chan struct{})
	var running sync.WaitGroup
	n := 0
	running.Go(func() {
		for {
			select {
			case <-done:
				return
			default:
			}
			n++
			var answer struct{ ID int64 }
			c.call("POST", "/v1/push", fmt.Sprintf(`{"channel":%q,"data":%d,"key":"key-%d"}`, channel, n, n), &answer)
		}
	})
	return pusher{stop: sync.OnceValue(func() int {
		close(done)
		running.Wait()
		return n
	})}
}

// replaceAll replaces each old text by the new one, which must occur in text.
func replaceAll(t *testing.T, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("%q is not in the configuration", pairs[i])
		}
		text = strings.ReplaceAll(text, pairs[i], pairs[i+1])
	}
	return text
}

// output runs a command to its end.
func output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	var all bytes.Buffer
	cmd.Stdout, cmd.Stderr = &all, &all
	if err := cmd.Run(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, &all)
	}
	return all.String()
}
