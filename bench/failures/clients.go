package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"switchboard/bench/swarm"

	"golang.org/x/sync/errgroup"
)

// maxConnecting is the number of clients that connect at the same time.
const maxConnecting = 64

// clients are connections that discard what they receive.
type clients struct {
	conns   []net.Conn
	closing atomic.Bool
	ended   atomic.Int64 // connections that ended before close
	readers sync.WaitGroup
}

func channelName(i int) string { return fmt.Sprint("bench-", i) }

// requests are what client i of n sends at its begin. answers is the number of answers.
func requests(i, n int, watching bool) (lines string, answers int) {
	lines = fmt.Sprintf(`{"type":"connect","client":"c","user":"u%d"}`+"\n", i)
	if !watching {
		return lines + fmt.Sprintf(`{"type":"subscribe","ref":1,"channel":%q}`+"\n", channelName(i)), 1
	}
	return lines + fmt.Sprintf(`{"type":"subscribe","ref":1,"channel":%q,"presence":true,"state":true}`+"\n"+
		`{"type":"subscribe","ref":2,"channel":"$user:u%d"}`+"\n", channelName(i), (i+1)%n), 2
}

// connectClients connects n clients over TCP and subscribes them. read reads from a client until
// its connection ends.
func connectClients(ctx context.Context, addr string, n int, watching bool, read func(net.Conn)) (c *clients, err error) {
	c = &clients{conns: make([]net.Conn, n)}
	if err := c.connect(ctx, func(ctx context.Context, i int) (net.Conn, error) {
		return connect(ctx, addr, i, n, watching)
	}); err != nil {
		return nil, err
	}
	c.read(read)
	return c, nil
}

// read reads from all clients. One whose connection ends before close counts as ended.
func (c *clients) read(one func(net.Conn)) {
	for _, conn := range c.conns {
		c.readers.Go(func() {
			one(conn)
			if !c.closing.Load() {
				c.ended.Add(1)
			}
		})
	}
}

// connect connects all clients with a function, some at the same time. It closes all if one fails.
func (c *clients) connect(ctx context.Context, one func(ctx context.Context, i int) (net.Conn, error)) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConnecting)
	for i := range c.conns {
		group.Go(func() (err error) {
			c.conns[i], err = one(ctx, i)
			return err
		})
	}
	err := group.Wait()
	if err != nil {
		c.close()
	}
	return err
}

func connect(ctx context.Context, addr string, i, n int, watching bool) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	lines, answers := requests(i, n, watching)
	if _, err := io.WriteString(conn, lines); err != nil {
		return conn, err
	}
	stop := context.AfterFunc(ctx, func() { conn.Close() })
	defer stop()
	if err := readUntil(conn, `"subscribed"`, answers); err != nil {
		return conn, fmt.Errorf("client %d: %w", i, err)
	}
	return conn, nil
}

// upgrade opens a WebSocket on a connection.
func upgrade(conn net.Conn, addr, path string) error {
	if _, err := conn.Write(swarm.Upgrade(addr, path)); err != nil {
		return err
	}
	return readUntil(conn, "\r\n\r\n", 1)
}

// sendText sends a text message over a WebSocket.
func sendText(conn net.Conn, text []byte) error {
	frame, err := swarm.TextFrame(text)
	if err == nil {
		_, err = conn.Write(frame)
	}
	return err
}

// readUntil reads until a text has arrived as many times as given.
func readUntil(conn net.Conn, text string, times int) error {
	var all []byte
	buf := make([]byte, 2048)
	for bytes.Count(all, []byte(text)) < times {
		n, err := conn.Read(buf)
		all = append(all, buf[:n]...)
		if err != nil || bytes.Contains(all, []byte(`"error"`)) {
			return fmt.Errorf("got %.300q instead of %q (%v)", all, text, err)
		}
	}
	return nil
}

// discard reads until the connection ends.
func discard(conn net.Conn) {
	buf := make([]byte, 2048)
	for {
		if _, err := conn.Read(buf); err != nil {
			return
		}
	}
}

// eachPayload reads lines until the connection ends. It calls found for each message with a payload
// of swarm.AppendPayload.
func eachPayload(conn net.Conn, found func(n, at int64)) {
	for lines := bufio.NewReaderSize(conn, 512); ; {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			Data struct{ N, T int64 }
		}
		if bytes.HasPrefix(line, []byte(`{"type":"message"`)) && json.Unmarshal(line, &m) == nil && m.Data.N > 0 {
			found(m.Data.N, m.Data.T)
		}
	}
}

// check returns an error if a connection has ended.
func (c *clients) check() error {
	if n := c.ended.Load(); n > 0 {
		return errors.New(fmt.Sprint(n, " connections have ended"))
	}
	return nil
}

// close closes all connections.
func (c *clients) close() {
	c.closing.Store(true)
	for _, conn := range c.conns {
		if conn != nil {
			_ = conn.Close()
		}
	}
	c.readers.Wait()
}
