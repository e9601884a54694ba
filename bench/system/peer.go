package system

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/proc"
)

// peer is the running server of another project.
type peer struct {
	process *proc.Process
	addr    string
}

// startPeer runs cmd, which is to listen on addr, and waits until it does.
func startPeer(ctx context.Context, name, addr string, cmd *exec.Cmd) (*peer, error) {
	process, err := proc.Start(name, cmd, nil)
	if err != nil {
		return nil, err
	}
	p := &peer{process, addr}
	ctx, cancel := context.WithTimeout(ctx, readyTime)
	defer cancel()
	err = await.Success(ctx, func() error {
		if err := process.Signal(0); err != nil {
			cancel() // it has ended
			return err
		}
		conn, err := net.DialTimeout("tcp", addr, time.Second)
		if err != nil {
			return err
		}
		return conn.Close()
	})
	if err != nil {
		process.Kill()
		return nil, fmt.Errorf("%s does not listen on %s: %w\n%s", name, addr, err, process.Tail(10))
	}
	return p, nil
}

// PIDs are those of the process and of its children.
func (p *peer) PIDs() []int { return append([]int{p.process.PID()}, children(p.process.PID())...) }

// Addr implements [Running].
func (p *peer) Addr() string { return p.addr }

// Stop ends the process as an operator would, and all that is left of it.
func (p *peer) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTime)
	defer cancel()
	err := p.process.End(ctx, syscall.SIGTERM)
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, p.process.Tail(10))
	}
	p.process.Kill()
	return err
}

// children are the processes that pid has started. What ends meanwhile is none.
func children(pid int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// proc(5): pid (name) state ppid …, and a name may hold spaces and brackets.
		fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
		if len(fields) < 2 || string(fields[1]) != strconv.Itoa(pid) {
			continue
		}
		if child, err := strconv.Atoi(filepath.Base(filepath.Dir(path))); err == nil {
			pids = append(pids, child)
		}
	}
	return pids
}

// program is where a program of the distribution is. Those of administrators are not in everybody's PATH.
func program(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if sbin, err := exec.LookPath("/usr/sbin/" + name); err == nil {
		return sbin, nil
	}
	return "", err
}

// moduleFile is a file of this module.
func moduleFile(ctx context.Context, path ...string) (string, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "switchboard").Output()
	if err != nil {
		return "", fmt.Errorf("go list -m switchboard: %w", err)
	}
	return filepath.Join(append([]string{strings.TrimSpace(string(dir))}, path...)...), nil
}

// installDebian installs packages of the distribution, as root on Debian; else the error names them.
func installDebian(ctx context.Context, log io.Writer, packages ...string) error {
	names := strings.Join(packages, " ")
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("missing: %s (on Debian: apt-get install %s)", names, names)
	}
	script, err := moduleFile(ctx, "bench", "peers", "install")
	if err != nil {
		return err
	}
	say(log, "installing the Debian packages %s", names)
	return output(exec.CommandContext(ctx, script, packages...))
}

// say tells what takes its time. Zero of log is standard error.
func say(log io.Writer, format string, args ...any) {
	if log == nil {
		log = os.Stderr
	}
	_, _ = fmt.Fprintf(log, "\n"+format+"\n", args...) // on a line of its own, below a progress line
}

// output runs cmd and makes what it said part of its error.
func output(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// single is a Publisher's PublishBatch where the server takes one message at a time.
type single struct{}

func (single) PublishBatch(context.Context, []string, [][]byte) error { return errors.ErrUnsupported }

// version is that of an installed Debian package, "" when it cannot be told.
func version(debian string) string {
	out, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", debian).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
