package testbed_test

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"switchboard/internal/testbed"
)

// TestProcess reads a log in two ways, and ends the process.
func TestProcess(t *testing.T) {
	p := testbed.Run(t, "sh", exec.CommandContext(t.Context(), "sh", "-c", `
		echo '{"message":"begin","n":1}' >&2; echo other >&2; echo '{"message":"begin again","n":2}' >&2; exec sleep 600`), nil)
	for n := 1.0; n <= 2; n++ {
		if fields, err := p.Next(t.Context(), "begin"); err != nil || fields["n"] != n {
			t.Fatalf("%v, %v; want the fields of line %v", fields, err, n)
		}
	}
	if n, err := p.Logged(t.Context(), "begin", "n"); err != nil || n != "1" {
		t.Errorf("%s, %v", n, err)
	}
	if none, err := p.Logged(t.Context(), "begin", "m"); err != nil || none != "" {
		t.Errorf("a field that was not logged is %q, %v", none, err)
	}
	if err := p.End(t.Context(), syscall.SIGKILL); err != nil {
		t.Error(err)
	}
	if _, err := p.Next(t.Context(), "begin"); err == nil {
		t.Error("an ended process logs")
	}
}

// TestAPI sends each kind of body.
func TestAPI(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if len(body) == 0 {
			w.WriteHeader(http.StatusTeapot)
		}
		fmt.Fprintf(w, `{"body":%q,"key":%q}`, body, r.Header.Get("Authorization"))
	}))
	defer s.Close()
	api := testbed.API{HTTP: strings.TrimPrefix(s.URL, "http://"), Key: "k"}
	for _, c := range []struct {
		body any
		want string
	}{{`{"a":1}`, `{"a":1}`}, {strings.NewReader("x"), "x"}, {map[string]int{"a": 1}, `{"a":1}`}} {
		var got struct{ Body, Key string }
		if err := api.Call(t.Context(), http.MethodPost, "/", c.body, &got); err != nil || got.Body != c.want || got.Key != "Bearer k" {
			t.Errorf("%v: %+v, %v", c.body, got, err)
		}
	}
	if err := api.Call(t.Context(), http.MethodGet, "/", nil, nil); err == nil || !strings.Contains(err.Error(), "418") {
		t.Errorf("a refused call: %v", err)
	}
}

// TestLink drops bytes, refuses connections, and forwards to another server.
func TestLink(t *testing.T) {
	echo := func(answer string) string {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = l.Close() })
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				_, _ = io.WriteString(conn, answer+"\n")
				go func() { _, _ = io.Copy(conn, conn) }()
			}
		}()
		return l.Addr().String()
	}
	link, err := testbed.NewLink("test", echo("first"))
	if err != nil {
		t.Fatal(err)
	}
	defer link.Cut()
	connect := func(want string) net.Conn {
		conn, err := net.Dial("tcp", link.Addr())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = conn.Close() })
		got := make([]byte, len(want)+1)
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != want+"\n" {
			t.Fatalf("%q, %v", got, err)
		}
		return conn
	}
	conn := connect("first")
	if err := link.Blackhole(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(conn, "dropped\n")
	if err := link.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if rest, _ := io.ReadAll(conn); len(rest) > 0 { // ends, since bytes are lost
		t.Errorf("%q arrived", rest)
	}
	if err := link.Forward(echo("second")); err != nil {
		t.Fatal(err)
	}
	connect("second")
	link.Cut()
	if _, err := net.Dial("tcp", link.Addr()); err == nil {
		t.Error("a link that is cut accepts")
	}
	if err := link.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	connect("second")
}
