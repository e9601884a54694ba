package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"switchboard/internal/freeport"
	"switchboard/internal/proc"
)

// times holds the beat of a run: the interval at which a broker renews its lease. The other
// intervals follow from it.
type times struct{ Beat time.Duration }

func (t times) lease() time.Duration           { return 5 * t.Beat }
func (t times) janitorInterval() time.Duration { return t.Beat * 3 / 2 } // between two rounds of the janitor over the servers
func (t times) drainTime() time.Duration       { return t.Beat }         // within which a stopping broker disconnects its clients

// cleanupBound is the longest time until nothing remains of a dead server or a departed client: the
// lease, two rounds of the janitor with a second each for its probe, and 2 s of slack.
func (t times) cleanupBound() time.Duration {
	return t.lease() + 2*(t.janitorInterval()+t.janitorInterval()/10+time.Second) + 2*time.Second
}

// instance is one broker. Its addresses stay the same when it restarts.
type instance struct {
	name      string
	http, tcp string // host:port
	peer      string // listener for links between brokers, "" for none
	advertise string // address under which the others reach peer
	redis     string // URL
	program   string
	environ   []string
	drainTime time.Duration

	id   string // server id of the current process
	proc *proc.Process
	runs []*proc.Process // all processes so far
}

func (b *instance) start(ctx context.Context) error {
	args := []string{
		"--name", b.name, "--redis", b.redis, "--http", b.http, "--tcp", b.tcp,
		"--drain-time", b.drainTime.String(), "--log-format", "json",
	}
	if b.peer != "" {
		args = append(args, "--peer", b.peer, "--advertise", b.advertise)
	}
	cmd := exec.Command(b.program, args...)
	cmd.Env = b.environ
	var err error
	if b.proc, err = proc.Start(b.name, cmd, nil); err != nil {
		return err
	}
	b.runs = append(b.runs, b.proc)
	if _, err := b.proc.Logged(ctx, "listening", "http"); err != nil {
		return fmt.Errorf("%w\n%s", err, b.proc.Tail(10))
	}
	b.id, err = b.proc.Logged(ctx, "joined", "server")
	return err
}

// kill ends it with SIGKILL.
func (b *instance) kill() { b.proc.Kill() }

// restart ends the process by SIGTERM and starts it again.
func (b *instance) restart(ctx context.Context) error {
	if err := b.proc.End(ctx, syscall.SIGTERM); err != nil {
		return err
	}
	return b.start(ctx)
}

// processEnv returns the environment of a program under test. It inherits only PATH, because the
// rest of our own environment may hold settings.
func processEnv(more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH")}, more...)
}

// freeAddrs returns addresses without a listener.
func freeAddrs(n int) ([]string, error) {
	addrs := make([]string, n)
	for i := range addrs {
		var err error
		if addrs[i], err = freeport.Address(); err != nil {
			return nil, err
		}
	}
	return addrs, nil
}

// janitor is the janitor's process.
type janitor struct {
	program, redis string
	every          time.Duration
	proc           *proc.Process
	runs           []*proc.Process // all processes so far
}

func (j *janitor) start() error {
	cmd := exec.Command(j.program, "--redis", j.redis, "--servers-every", j.every.String(), "--log-format", "json")
	cmd.Env = processEnv()
	var err error
	j.proc, err = proc.Start("janitor", cmd, nil)
	if err == nil {
		j.runs = append(j.runs, j.proc)
	}
	return err
}

func (j *janitor) kill() { j.proc.Kill() }

// allLogs returns the logs of all processes of an instance.
func allLogs(runs []*proc.Process) string {
	var b strings.Builder
	for i, p := range runs {
		fmt.Fprintf(&b, "# start %d\n%s", i+1, p.Tail(0))
	}
	return b.String()
}
