package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"switchboard/bench/system"
	"switchboard/internal/freeport"
	"switchboard/internal/procgroup"
)

const (
	readyTimeout = 20 * time.Second // until a broker is ready
	stopTimeout  = 20 * time.Second // until it ends after SIGTERM
)

// target is the measured broker.
type target struct {
	http, tcp string // host:port
	pprof     string // host:port; "" for none
	pid       int

	cmd    *exec.Cmd // nil for a broker that was already running
	exited chan struct{}
	log    tailBuffer
	dir    string
}

// openTarget returns the running broker of the options, or builds and starts one.
func openTarget(ctx context.Context, o options, prefix string) (*target, error) {
	if o.pid != 0 {
		t := &target{http: o.urlHTTP, tcp: o.urlTCP, pprof: o.urlPprof, pid: o.pid}
		return t, t.awaitReady(ctx)
	}
	dir, err := os.MkdirTemp("", "switchboard-bench-")
	if err != nil {
		return nil, err
	}
	t := &target{dir: dir}
	program := o.broker
	if program == "" {
		program, err = system.BuildBroker(ctx, dir)
	}
	if err == nil {
		err = t.start(program, o.redis, prefix)
	}
	if err == nil {
		err = t.awaitReady(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, t.stop())
	}
	return t, nil
}

// start starts the broker on free ports, with default settings except for those of the run.
func (t *target) start(program, redis, prefix string) (err error) {
	if t.http, err = freeport.Address(); err != nil {
		return err
	}
	if t.tcp, err = freeport.Address(); err != nil {
		return err
	}
	if t.pprof, err = freeport.Address(); err != nil {
		return err
	}
	args := []string{"--http", t.http, "--tcp", t.tcp, "--log-level", "warn", "--drain-time", "1s"}
	if redis != "" {
		args = append(args, "--redis", redis, "--prefix", prefix)
	}
	t.cmd = exec.Command(program, args...)
	t.cmd.Stdout, t.cmd.Stderr = &t.log, &t.log
	// In a process group of its own the broker does not receive an interrupt from the terminal. This
	// program receives it, closes the sockets and then stops the broker.
	procgroup.Set(t.cmd)
	for _, v := range os.Environ() {
		if !strings.HasPrefix(v, "SWITCHBOARD_") {
			t.cmd.Env = append(t.cmd.Env, v)
		}
	}
	t.cmd.Env = append(t.cmd.Env, "SWITCHBOARD_PPROF="+t.pprof) // older programs ignore it
	if err := t.cmd.Start(); err != nil {
		t.cmd = nil
		return fmt.Errorf("start the broker: %w", err)
	}
	t.pid, t.exited = t.cmd.Process.Pid, make(chan struct{})
	go func() {
		_ = t.cmd.Wait()
		close(t.exited)
	}()
	return nil
}

// awaitReady polls /readyz until the broker is ready.
func (t *target) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		err := checkReady(ctx, client, t.http)
		if err == nil {
			return nil
		}
		select {
		case <-t.exited: // nil and never ready for a broker that was already running
			return t.checkRunning()
		case <-ctx.Done():
			return fmt.Errorf("the broker at %s is not ready: %w", t.http, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// checkRunning returns an error if a broker that this program started has ended.
func (t *target) checkRunning() error {
	select {
	case <-t.exited:
		return fmt.Errorf("the broker ended: %v\n%s", t.cmd.ProcessState, t.log.String())
	default:
		return nil
	}
}

func checkReady(ctx context.Context, client *http.Client, addr string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+addr+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return errors.New(resp.Status)
	}
	return nil
}

// stop stops a broker that this program started, and removes the built program.
func (t *target) stop() error {
	if t.cmd != nil {
		_ = t.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-t.exited:
		case <-time.After(stopTimeout):
			_ = t.cmd.Process.Kill()
			<-t.exited
		}
	}
	if t.dir != "" {
		return os.RemoveAll(t.dir)
	}
	return nil
}

// swarmAddress returns the address for subscribers of the transport.
func (t *target) swarmAddress(transport string) string {
	if transport == "http" {
		return t.http
	}
	return t.tcp
}

// tailBuffer keeps the last lines of a log.
type tailBuffer struct {
	mu  sync.Mutex // guards buf
	buf []byte
}

const tailSize = 4 << 10

// Write implements io.Writer.
func (b *tailBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.buf = append(b.buf, p...)
	if over := len(b.buf) - tailSize; over > 0 {
		b.buf = bytes.Clone(b.buf[over:])
	}
	return len(p), nil
}

// String returns the kept part.
func (b *tailBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return cmp.Or(string(b.buf), "(no log output)")
}
