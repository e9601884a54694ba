package system

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"switchboard/bench/swarm"
	"switchboard/internal/freeport"
	"switchboard/internal/testbed"
)

// Switchboard is this project's broker with default settings, except for ports, log level and drain
// time.
type Switchboard struct {
	Program string   // path, see BuildBroker
	Env     []string // added to this process's environment; "SWITCHBOARD_…=" changes a setting
	// Queue delivers through the queue of each client instead of a channel. Channel names are
	// client ids.
	Queue bool
	// State subscribes with the state of the channel, and pushes change its field [StateField]. With
	// Guarded each push has the condition that the field exists.
	State, Guarded bool
}

// Notes describes the configuration.
func (b *Switchboard) Notes() string {
	switch {
	case b.Guarded:
		return "each push changes one field of the channel's state, on condition that the field exists"
	case b.State:
		return "subscribers have subscribed with the state, and each push changes one of its fields"
	}
	return ""
}

const (
	readyTimeout = 20 * time.Second // until a server is ready
	stopTimeout  = 20 * time.Second // until it ends after SIGTERM
)

// BuildBroker builds ./cmd/broker of this module into dir.
func BuildBroker(ctx context.Context, dir string) (program string, err error) {
	program = filepath.Join(dir, "broker")
	return program, testbed.Build(ctx, "-o", program, "switchboard/cmd/broker")
}

// Start starts s.Instances brokers.
func (b *Switchboard) Start(ctx context.Context, s Setup) (Running, error) {
	r := &switchboard{Switchboard: b, transport: s.Transport, cursors: s.Cursors}
	for i := range max(1, s.Instances) {
		in, err := b.startInstance(ctx, fmt.Sprint("bench-", i), s)
		if err != nil {
			return nil, errors.Join(err, r.Stop())
		}
		r.instances = append(r.instances, in)
	}
	return r, nil
}

// instance is one broker process.
type instance struct {
	process   *testbed.Process // nil if this program has not started it
	pid       int
	http, tcp string // host:port
	pprof     string // host:port; "" for none
}

func (b *Switchboard) startInstance(ctx context.Context, name string, s Setup) (_ *instance, err error) {
	in := &instance{}
	if in.http, err = freeport.Address(); err != nil {
		return nil, err
	}
	if in.tcp, err = freeport.Address(); err != nil {
		return nil, err
	}
	p := &testbed.Program{
		Name: name, Path: b.Program, Args: []string{"--name", name, "--http", in.http, "--tcp", in.tcp, "--log-level", "warn", "--drain-time", "10ms"},
		Env: append([]string{"SWITCHBOARD_PEER_SECRET=" + strings.Repeat("bench", 7)}, b.Env...),
	}
	if s.Redis != "" {
		p.Args = append(p.Args, "--redis", "redis://"+s.Redis)
	}
	if s.Heap {
		if in.pprof, err = freeport.Address(); err != nil {
			return nil, err
		}
		p.Env = append(p.Env, "SWITCHBOARD_PPROF="+in.pprof)
	}
	if err := p.Start(); err != nil {
		return nil, err
	}
	in.process, in.pid = p.Process, p.PID()
	if err := in.awaitReady(ctx); err != nil {
		p.Kill()
		return nil, fmt.Errorf("%w\n%s", err, p.Tail(10))
	}
	return in, nil
}

// awaitReady waits until the broker is ready.
func (in *instance) awaitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	return testbed.API{HTTP: in.http}.AwaitReady(ctx)
}

// switchboard is a set of running brokers.
type switchboard struct {
	*Switchboard
	instances []*instance
	transport string
	cursors   bool
}

func (r *switchboard) PIDs() (pids []int) {
	for _, in := range r.instances {
		pids = append(pids, in.pid)
	}
	return pids
}

func (r *switchboard) Addr() string { return r.Addrs()[0] }

func (r *switchboard) Addrs() (addrs []string) {
	for _, in := range r.instances {
		if r.transport == "http" || r.transport == "sse" {
			addrs = append(addrs, in.http)
		} else {
			addrs = append(addrs, in.tcp)
		}
	}
	return addrs
}

// HTTP implements [Monitored].
func (r *switchboard) HTTP() string { return r.instances[0].http }

func (r *switchboard) Dialect() swarm.Dialect {
	if r.cursors {
		return swarm.NewSwitchboardCursors(r.State)
	}
	d := &swarm.Switchboard{Addr: r.Addr(), Queue: r.Queue}
	if r.State {
		d.Field = StateField
	}
	if r.transport == "sse" {
		return &swarm.EventStream{Switchboard: *d}
	}
	if r.transport != "tcp" {
		d.Path = "/ws"
	}
	return d
}

// Publisher returns a publisher that pushes to the first broker.
func (r *switchboard) Publisher() (Publisher, error) {
	conn, err := DialHTTP(r.instances[0].http)
	if err != nil {
		return nil, err
	}
	p := &switchboardPublisher{conn: conn, head: `{"channel":"`, middle: `","data":`, tail: "}"}
	switch {
	case r.Queue:
		p.head = `{"client":"`
	case r.State:
		p.middle, p.tail = `","set":{"`+StateField+`":`, "}}"
	}
	if r.Guarded {
		p.tail = `},"if":{"` + StateField + `":true}}`
	}
	return p, nil
}

// Kill implements [Killable].
func (r *switchboard) Kill() {
	for _, in := range r.instances {
		in.process.Kill()
	}
}

// Stop ends the processes with SIGTERM.
func (r *switchboard) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	var errs []error
	for _, in := range r.instances {
		errs = append(errs, in.process.Signal(syscall.SIGTERM))
	}
	for _, in := range r.instances {
		if _, err := in.process.Wait(ctx); err != nil {
			errs = append(errs, err)
			in.process.Kill()
		}
	}
	return errors.Join(errs...)
}

// switchboardPublisher pushes over one connection, as a backend does.
type switchboardPublisher struct {
	conn *HTTPConn
	// A push is head, the name of the channel or client, middle, the payload and tail.
	head, middle, tail string

	body []byte
}

const jsonHeader = "Content-Type: application/json\r\n"

func (p *switchboardPublisher) appendPush(dst []byte, channel string, data []byte) []byte {
	dst = append(append(dst, p.head...), channel...)
	return append(append(append(dst, p.middle...), data...), p.tail...)
}

func (p *switchboardPublisher) Publish(ctx context.Context, channel string, data []byte) error {
	p.body = p.appendPush(p.body[:0], channel, data)
	answer, err := p.conn.Post(ctx, "/v1/push", jsonHeader, p.body)
	if err == nil && !bytes.Contains(answer, []byte(`"id":`)) {
		err = fmt.Errorf("the answer has no id: %.300s", answer)
	}
	return err
}

func (p *switchboardPublisher) PublishBatch(ctx context.Context, channels []string, data [][]byte) error {
	p.body = append(p.body[:0], `{"messages":[`...)
	for i, channel := range channels {
		if i > 0 {
			p.body = append(p.body, ',')
		}
		p.body = p.appendPush(p.body, channel, data[i])
	}
	p.body = append(p.body, "]}"...)
	answer, err := p.conn.Post(ctx, "/v1/push/batch", jsonHeader, p.body)
	if n := bytes.Count(answer, []byte(`"id":`)); err == nil && n != len(channels) {
		err = fmt.Errorf("%d of %d pushes were accepted: %.300s", n, len(channels), answer)
	}
	return err
}

func (p *switchboardPublisher) Close() error { return p.conn.Close() }
