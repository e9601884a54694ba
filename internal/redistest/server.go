// Package redistest starts real redis-server processes for tests: single servers,
// a master and its replica under Sentinels, and Clusters with and without replicas, on
// free ports of the loopback interface, with their files in a directory of the test,
// ended with the test.
package redistest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/freeport"
)

// logFile has what a server wrote over all its lives, for who asks why a test failed.
const logFile = "redis.log"

// Server is one running redis-server.
type Server struct {
	Addr  string // 127.0.0.1:port
	cmd   *exec.Cmd
	args  []string
	env   []string      // beside our own
	dir   string        // what it logs goes to logFile there
	ready string        // what it logs when it is up
	exit  chan struct{} // closed when the process ended
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
func Launch(dir string, extra ...string) (*Server, error) { return launch(dir, nil, extra) }

func launch(dir string, env, extra []string) (*Server, error) {
	var err error
	for range 5 { // somebody else may take the port between the look and the start
		var port int
		if port, err = freeport.Find(); err != nil {
			return nil, err
		}
		s := &Server{Addr: fmt.Sprintf("127.0.0.1:%d", port), env: env, dir: dir, ready: "Ready to accept connections"}
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
// connections; with "--appendonly", "yes" it has its data again. The server must not be
// running.
func (s *Server) Restart() error {
	cmd := exec.Command("redis-server", s.args...)
	if s.env != nil {
		cmd.Env = append(os.Environ(), s.env...)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	cmd.Stderr = cmd.Stdout
	file, err := os.OpenFile(filepath.Join(s.dir, logFile), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		_ = file.Close()
		return fmt.Errorf("start redis-server (Debian package redis-server): %w", err)
	}
	var log strings.Builder
	logged := io.TeeReader(out, file)
	lines := bufio.NewScanner(io.TeeReader(logged, &log))
	for lines.Scan() {
		if strings.Contains(lines.Text(), s.ready) {
			s.cmd, s.exit = cmd, make(chan struct{})
			go func(exit chan struct{}) {
				_, _ = io.Copy(io.Discard, logged)
				_ = cmd.Wait()
				_ = file.Close()
				close(exit)
			}(s.exit)
			return nil
		}
	}
	return errors.Join(fmt.Errorf("redis-server on %s did not start:\n%s", s.Addr, &log), cmd.Wait(), file.Close())
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

// Do runs one command on a connection of its own.
func (s *Server) Do(ctx context.Context, command ...any) *redis.Cmd {
	node := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer node.Close()
	return node.Do(ctx, command...)
}

// field is one value of INFO or CLUSTER INFO, "" while the server does not answer.
func (s *Server) field(ctx context.Context, name string, command ...any) string {
	text, err := s.Do(ctx, command...).Text()
	if err != nil {
		return ""
	}
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// inStep says whether s is a replica that has all its master had when it connected.
func (s *Server) inStep(ctx context.Context) bool {
	return s.field(ctx, "master_link_status", "info", "replication") == "up"
}

// followed says whether a replica confirms what s writes: that begins up to a second after
// the replica is in step. A library of functions is the one thing to write that is no key.
func (s *Server) followed(ctx context.Context) bool {
	node := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer node.Close()
	pipe := node.Pipeline()
	pipe.FunctionFlush(ctx)
	replicas := pipe.Do(ctx, "wait", 1, 1000)
	_, err := pipe.Exec(ctx)
	return err == nil && replicas.Val() != int64(0)
}
