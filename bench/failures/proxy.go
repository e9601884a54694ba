package main

import (
	"errors"
	"net"
	"sync"
	"sync/atomic"
)

// proxy is a TCP proxy between two brokers that can drop all bytes. Connections stay open meanwhile
// and new ones are accepted, as in a network that loses packets.
type proxy struct {
	listener net.Listener
	dropping atomic.Bool
	running  sync.WaitGroup

	mu     sync.Mutex // guards the fields below
	to     string     // host:port, "" before forward
	conns  map[net.Conn]struct{}
	closed bool
}

func newProxy() (*proxy, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := &proxy{listener: l, conns: map[net.Conn]struct{}{}}
	p.running.Go(p.accept)
	return p, nil
}

func (p *proxy) addr() string { return p.listener.Addr().String() }

// forward sets where the connections lead.
func (p *proxy) forward(to string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.to = to
}

func (p *proxy) accept() {
	for {
		in, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.mu.Lock()
		to := p.to
		p.mu.Unlock()
		out, err := net.Dial("tcp", to)
		if err != nil {
			_ = in.Close()
			continue
		}
		if !p.add(in, out) {
			return
		}
		p.running.Go(func() { p.copy(in, out) })
		p.running.Go(func() { p.copy(out, in) })
	}
}

// add remembers a connection. After close it closes the connection instead, and returns false.
func (p *proxy) add(in, out net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		_ = errors.Join(in.Close(), out.Close())
		return false
	}
	p.conns[in], p.conns[out] = struct{}{}, struct{}{}
	return true
}

// copy copies one direction, until a side closes.
func (p *proxy) copy(from, to net.Conn) {
	defer func() {
		_ = errors.Join(from.Close(), to.Close())
		p.mu.Lock()
		defer p.mu.Unlock()
		delete(p.conns, from)
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 && !p.dropping.Load() {
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// drop drops all bytes from now on.
func (p *proxy) drop() { p.dropping.Store(true) }

// restore ends the connections that may have lost bytes, and forwards those of new ones.
func (p *proxy) restore() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closeConnsLocked()
	p.dropping.Store(false)
}

func (p *proxy) closeConnsLocked() {
	for conn := range p.conns {
		_ = conn.Close()
	}
}

func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.closeConnsLocked()
	p.mu.Unlock()
	p.running.Wait()
}
