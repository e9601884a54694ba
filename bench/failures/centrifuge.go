package main

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"time"

	"switchboard/bench/progress"
	"switchboard/bench/system"
)

// checksWindow is for the quiet time of centrifuge. It has each client's check of its position,
// which follows 40 s after the one before.
const checksWindow = 50 * time.Second

// peerCase counts the commands of Redis when a node of centrifuge starts, ends and is killed, while
// n clients are connected to another one. Each has a channel with history and recovery of its own.
func (o options) peerCase(ctx context.Context, p *progress.Line, dir string, n int) (r result, err error) {
	r.Clients = n
	server, stats, end, err := launchRedis(dir)
	if err != nil {
		return r, err
	}
	defer end()
	c := &testCase{options: o, progress: p, dir: dir, stats: stats, result: r}
	start := func() (system.Running, error) {
		return (&system.Centrifuge{Dir: dir}).Start(ctx, system.Setup{Dir: dir, History: true, Redis: server.Addr, Clients: n})
	}
	holder, err := start()
	if err != nil {
		return r, err
	}
	defer kill(holder)
	clients := &clients{conns: make([]net.Conn, n)}
	if err := clients.connect(ctx, func(ctx context.Context, i int) (net.Conn, error) {
		return connectCentrifuge(ctx, holder.Addr(), i)
	}); err != nil {
		return r, err
	}
	clients.read(answerPings)
	defer clients.close()
	var other system.Running
	startOther := func() (err error) {
		other, err = start()
		return err
	}
	steps := []struct {
		name   string
		into   *int64
		window time.Duration
		do     func() error
	}{
		{"quiet", &c.result.Quiet, checksWindow, func() error { return nil }},
		{"start", &c.result.Start, stepWindow, startOther},
		{"planned end", &c.result.End, stepWindow, func() error { return other.Stop() }},
		{"", new(int64), settleTime, startOther},
		{"kill", &c.result.Kill, killWindow, func() error { kill(other); return nil }},
	}
	if err := c.wait(ctx, settleTime); err != nil {
		return r, err
	}
	defer func() {
		if other != nil {
			kill(other)
		}
	}()
	for _, s := range steps {
		p.Stage("centrifuge, %d clients: %s", n, s.name)
		if err := c.count(ctx, s.into, s.window, s.do); err != nil {
			return r, err
		}
	}
	c.result.Quiet = int64(float64(c.result.Quiet) * killWindow.Seconds() / checksWindow.Seconds())
	return c.result, clients.check()
}

// connectCentrifuge connects client i and subscribes it.
func connectCentrifuge(ctx context.Context, addr string, i int) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := upgrade(conn, addr, "/connection/websocket"); err != nil {
		return conn, err
	}
	if err := sendText(conn, fmt.Appendf(nil, `{"id":1,"connect":{}}`+"\n"+`{"id":2,"subscribe":{"channel":%q}}`, channelName(i))); err != nil {
		return conn, err
	}
	return conn, readUntil(conn, `"subscribe"`, 1)
}

// answerPings reads until the connection ends. It answers the pings of centrifuge, which are {}.
func answerPings(conn net.Conn) {
	buf := make([]byte, 512)
	for {
		n, err := conn.Read(buf)
		if err == nil && bytes.Contains(buf[:n], []byte("\x81\x02{}")) {
			err = sendText(conn, []byte("{}"))
		}
		if err != nil {
			return
		}
	}
}

// idlePeer counts the commands of n idle nodes of centrifuge, which are in one process.
func (o options) idlePeer(ctx context.Context, dir string, n int) (r idleResult, err error) {
	server, stats, end, err := launchRedis(dir)
	if err != nil {
		return r, err
	}
	defer end()
	nodes, err := (&system.Centrifuge{Dir: dir, Nodes: n}).Start(ctx, system.Setup{Dir: dir, History: true, Redis: server.Addr})
	if err != nil {
		return r, err
	}
	defer kill(nodes)
	r = idleResult{System: centrifugeName, Brokers: n}
	err = o.countIdle(ctx, stats, &r)
	return r, err
}
