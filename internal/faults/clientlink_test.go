package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"testing"
	"time"
)

// upstream starts a listener and returns its address and its accepted connections.
func upstream(t *testing.T) (addr string, conns chan net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conns = make(chan net.Conn, 1)
	go func() {
		defer close(conns)
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			conns <- c
		}
	}()
	t.Cleanup(func() { _ = l.Close() })
	return l.Addr().String(), conns
}

func TestCutLinkConnectsToNextUpstream(t *testing.T) {
	first, atFirst := upstream(t)
	second, atSecond := upstream(t)
	p, err := newClientLink([]string{first, second}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	for _, at := range []chan net.Conn{atFirst, atSecond, atFirst} {
		near, err := net.Dial("tcp", p.addr())
		if err != nil {
			t.Fatal(err)
		}
		far := <-at
		fmt.Fprintln(near, "hello")
		if line, err := bufio.NewReader(far).ReadString('\n'); line != "hello\n" {
			t.Fatalf("%q, %v", line, err)
		}
		p.cut(immediately)
		if _, err := io.ReadAll(near); err == nil {
			t.Error("the connection ended without an error")
		}
		_ = near.Close()
		_ = far.Close()
	}
}

func TestCutLinkAtMessage(t *testing.T) {
	addr, conns := upstream(t)
	p, err := newClientLink([]string{addr}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	for when, want := range map[cutTime]string{afterMessage: "one two", insteadOfMessage: "one "} {
		near, err := net.Dial("tcp", p.addr())
		if err != nil {
			t.Fatal(err)
		}
		far := <-conns
		fmt.Fprint(far, "one ")
		got := make([]byte, len("one "))
		if _, err := io.ReadFull(near, got); err != nil {
			t.Fatal(err)
		}
		p.cut(when)
		fmt.Fprint(far, "two")
		rest, err := io.ReadAll(near)
		if text := string(got) + string(rest); text != want || err != nil {
			t.Errorf("cut %d: the client got %q (%v), want %q", when, text, err, want)
		}
		if _, err := far.Read(got); err == nil {
			t.Error("the broker's side is still open")
		}
		_ = near.Close()
		_ = far.Close()
	}
}

func TestStopReadingFillsSocket(t *testing.T) {
	addr, conns := upstream(t)
	p, err := newClientLink([]string{addr}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	near, err := net.Dial("tcp", p.addr())
	if err != nil {
		t.Fatal(err)
	}
	defer near.Close()
	far := <-conns
	defer far.Close()
	p.stopReading()
	const size = 16 << 20 // more than the kernel buffers
	if err := far.SetWriteDeadline(time.Now().Add(200 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	sent, err := far.Write(make([]byte, size))
	if err == nil {
		t.Fatalf("all %d bytes were accepted although nothing reads them", size)
	}
	p.resumeReading()
	if _, err := io.ReadFull(near, make([]byte, sent)); err != nil {
		t.Errorf("%d bytes were sent: %v", sent, err)
	}
}
