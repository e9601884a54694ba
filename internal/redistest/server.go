// Package redistest starts real redis-server processes for tests: single servers and
// Clusters, on free ports of the loopback interface, with their files in a directory
// of the test, ended with the test.
package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// Server is one running redis-server.
type Server struct {
	Addr string // 127.0.0.1:port
	cmd  *exec.Cmd
	args []string
	exit chan struct{} // closed when the process ended
}

// Start runs a redis-server for the length of the test. extra are further arguments, like
// "--maxmemory", "10mb".
func Start(tb testing.TB, extra ...string) *Server {
	tb.Helper()
	s, err := Launch(tb.TempDir(), extra...)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(s.Kill)
	return s
}

// Launch is Start without a test: the caller kills the server.
func Launch(dir string, extra ...string) (*Server, error) {
	var err error
	for range 5 { // somebody else may take the port between the look and the start
		var port int
		if port, err = freePort(); err != nil {
			return nil, err
		}
		s := &Server{Addr: fmt.Sprintf("127.0.0.1:%d", port)}
		s.args = append([]string{
			"--port", fmt.Sprint(port), "--bind", "127.0.0.1", "--dir", dir,
			"--save", "", "--appendonly", "no", "--daemonize", "no",
		}, extra...)
		if err = s.Restart(); err == nil {
			return s, nil
		}
	}
	return nil, err
}

// Restart starts the process again on the same port and waits until it accepts
// connections. The server must not be running.
func (s *Server) Restart() error {
	cmd := exec.Command("redis-server", s.args...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("start redis-server (Debian package redis-server): %w", err)
	}
	lines := bufio.NewScanner(out)
	var log strings.Builder
	for lines.Scan() {
		fmt.Fprintln(&log, lines.Text())
		if strings.Contains(lines.Text(), "Ready to accept connections") {
			s.cmd, s.exit = cmd, make(chan struct{})
			go func(exit chan struct{}) {
				_, _ = io.Copy(io.Discard, out)
				_ = cmd.Wait()
				close(exit)
			}(s.exit)
			return nil
		}
	}
	return errors.Join(fmt.Errorf("redis-server on %s did not start:\n%s", s.Addr, &log), cmd.Wait())
}

// Kill ends the process with SIGKILL and waits for its end. Killing twice is harmless.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.exit
}

// PID is the process id, for signals.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// URL is the address as configuration takes it.
func (s *Server) URL() string { return "redis://" + s.Addr }

// Client is a connection to the server for the length of the test.
func (s *Server) Client(tb testing.TB) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

func freePort() (int, error) {
	l, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port, nil
}
