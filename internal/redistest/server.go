// Package redistest starts real redis-server processes for tests: single servers, a master and its
// replica under Sentinels, and Clusters with and without replicas. They listen on free ports of the
// loopback interface, keep their files in a directory of the test, and are killed when the test
// ends.
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

// logFile is the log of a server over all its restarts, for debugging.
const logFile = "redis.log"

// Server is one running redis-server.
type Server struct {
	Addr  string // 127.0.0.1:port
	cmd   *exec.Cmd
	args  []string
	env   []string      // added to the environment of this process
	dir   string        // contains logFile
	ready string        // log message after the start
	exit  chan struct{} // closed after the process ended
}

// Start runs a redis-server until the test ends. extra is appended to its arguments, like
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
	for range 5 { // another process may take the port before the server listens
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

// Restart starts the process again on the same port and waits until it accepts connections. With
// "--appendonly", "yes" it reloads its data. The server must not be running.
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

// StartCopy runs a server with the data of a killed one until the test ends. The killed one had
// "--appendonly", "yes", and must not run again. The copy belongs to no Cluster and has no master.
func (s *Server) StartCopy(tb testing.TB) *Server {
	tb.Helper()
	c, err := Launch(s.dir, "--appendonly", "yes")
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.Kill)
	return c
}

// Kill kills the process and waits until it ended. A second Kill is harmless.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill()
	<-s.exit
}

// PID returns the process id, for signals.
func (s *Server) PID() int { return s.cmd.Process.Pid }

// URL returns the address in the form of the configuration.
func (s *Server) URL() string { return "redis://" + s.Addr }

// Client returns a client of the server, which is closed when the test ends.
func (s *Server) Client(tb testing.TB) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	tb.Cleanup(func() { _ = c.Close() })
	return c
}

// Do runs one command on a new connection.
func (s *Server) Do(ctx context.Context, command ...any) *redis.Cmd {
	node := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer node.Close()
	return node.Do(ctx, command...)
}

// field returns one value of INFO or CLUSTER INFO, "" if the server does not reply.
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

// inSync reports whether s is a replica that has all data its master had when it connected.
func (s *Server) inSync(ctx context.Context) bool {
	return s.field(ctx, "master_link_status", "info", "replication") == "up"
}

// replicates reports whether a replica confirms a write to s. Confirmations begin up to a second
// after the replica is in sync. FUNCTION FLUSH is a write that changes no key.
func (s *Server) replicates(ctx context.Context) bool {
	node := redis.NewClient(&redis.Options{Addr: s.Addr, MaxRetries: -1, ContextTimeoutEnabled: true})
	defer node.Close()
	pipe := node.Pipeline()
	pipe.FunctionFlush(ctx)
	replicas := pipe.Do(ctx, "wait", 1, 1000)
	_, err := pipe.Exec(ctx)
	return err == nil && replicas.Val() != int64(0)
}
