package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"switchboard/internal/proc"
)

// times are the intervals of a run; the others follow from the beat.
type times struct{ Beat time.Duration }

func (t times) lease() time.Duration   { return 5 * t.Beat }
func (t times) servers() time.Duration { return t.Beat * 3 / 2 } // between two looks of the janitor
func (t times) drain() time.Duration   { return t.Beat }         // over which a broker's clients are sent away

// bound is when nothing may be left of a server that died, or of a client that left: its
// lease runs out, the janitor looks twice, with a second for its probe, and everybody gets
// some time to do it.
func (t times) bound() time.Duration {
	return t.lease() + 2*(t.servers()+t.servers()/10+time.Second) + 2*time.Second
}

// instance is one broker, under addresses that stay over restarts.
type instance struct {
	name      string
	http, tcp string // host:port
	peer      string // of its own for links between brokers, "" for none
	advertise string // where the others reach peer
	redis     string // URL
	program   string
	environ   []string
	drain     time.Duration

	id   string // of the server, since the last start
	proc *proc.Process
	logs []*proc.Process // of all its lives
}

func (b *instance) start(ctx context.Context) error {
	args := []string{
		"--name", b.name, "--redis", b.redis, "--http", b.http, "--tcp", b.tcp,
		"--drain-time", b.drain.String(), "--log-format", "json",
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
	b.logs = append(b.logs, b.proc)
	if _, err := b.proc.Logged(ctx, "listening", "http"); err != nil {
		return fmt.Errorf("%w\n%s", err, b.proc.Tail(10))
	}
	b.id, err = b.proc.Logged(ctx, "joined", "server")
	return err
}

// kill ends it with SIGKILL.
func (b *instance) kill() { b.proc.Kill() }

// restart ends it in order and starts it again.
func (b *instance) restart(ctx context.Context) error {
	if err := b.proc.End(ctx, syscall.SIGTERM); err != nil {
		return err
	}
	return b.start(ctx)
}

// environ is what a program gets: not all of ours, which may hold settings.
func environ(more ...string) []string { return append([]string{"PATH=" + os.Getenv("PATH")}, more...) }

// The ports of servers come from below those that the system gives to connections going
// out, one of which could take the place of a server that is being started again.
const (
	firstPort = 20_000
	lastPort  = 32_000
)

// freeAddrs are addresses that nobody listens on.
func freeAddrs(n int) ([]string, error) {
	var addrs []string
	for try := 0; len(addrs) < n; try++ {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", firstPort+rand.IntN(lastPort-firstPort)))
		if err == nil {
			defer l.Close() // all at the end, so that none is given twice
			addrs = append(addrs, l.Addr().String())
		} else if try > 100*n {
			return nil, err
		}
	}
	return addrs, nil
}

// janitor runs beside the brokers.
type janitor struct {
	program, redis string
	every          time.Duration
	proc           *proc.Process
	logs           []*proc.Process
}

func (j *janitor) start() error {
	cmd := exec.Command(j.program, "--redis", j.redis, "--servers-every", j.every.String(), "--log-format", "json")
	cmd.Env = environ()
	var err error
	j.proc, err = proc.Start("janitor", cmd, nil)
	if err == nil {
		j.logs = append(j.logs, j.proc)
	}
	return err
}

func (j *janitor) kill() { j.proc.Kill() }

// allLogs is what a process wrote over all its lives.
func allLogs(lives []*proc.Process) string {
	var b strings.Builder
	for i, p := range lives {
		fmt.Fprintf(&b, "# start %d\n%s", i+1, p.Tail(0))
	}
	return b.String()
}
