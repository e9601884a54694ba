package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"

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

// connectClients connects n clients over TCP and subscribes them.
func connectClients(ctx context.Context, addr string, n int, watching bool) (c *clients, err error) {
	c = &clients{conns: make([]net.Conn, n)}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(maxConnecting)
	for i := range n {
		group.Go(func() (err error) {
			c.conns[i], err = connect(ctx, addr, i, n, watching)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		c.close()
		return nil, err
	}
	for _, conn := range c.conns {
		c.readers.Go(func() {
			discard(conn)
			if !c.closing.Load() {
				c.ended.Add(1)
			}
		})
	}
	return c, nil
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
	var text []byte
	buf := make([]byte, 2048)
	for bytes.Count(text, []byte(`"subscribed"`)) < answers {
		n, err := conn.Read(buf)
		text = append(text, buf[:n]...)
		if err != nil || bytes.Contains(text, []byte(`"error"`)) {
			return conn, fmt.Errorf("client %d: %s: %w", i, text, err)
		}
	}
	return conn, nil
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
