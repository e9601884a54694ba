package main

import (
	"bufio"
	"io"
	"net"
	"testing"
)

// TestProxy checks that a proxy drops bytes without an error, and forwards those of new connections
// after that.
func TestProxy(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	p, err := newProxy()
	if err != nil {
		t.Fatal(err)
	}
	defer p.close()
	p.forward(l.Addr().String())
	connect := func() (in, out net.Conn) {
		in, err := net.Dial("tcp", p.addr())
		if err != nil {
			t.Fatal(err)
		}
		if out, err = l.Accept(); err != nil {
			t.Fatal(err)
		}
		return in, out
	}
	in, out := connect()
	defer in.Close()
	lines := bufio.NewReader(out)
	write := func(c net.Conn, text string) {
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
	}
	write(in, "before\n")
	if line, err := lines.ReadString('\n'); line != "before\n" {
		t.Fatalf("got %q, %v", line, err)
	}
	p.drop()
	write(in, "dropped\n")
	p.restore()
	if rest, _ := io.ReadAll(lines); len(rest) > 0 { // ends, since bytes are lost
		t.Errorf("got %q", rest)
	}
	again, out := connect()
	defer again.Close()
	write(again, "after\n")
	if line, err := bufio.NewReader(out).ReadString('\n'); line != "after\n" {
		t.Errorf("got %q, %v", line, err)
	}
}
