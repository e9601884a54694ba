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
	"switchboard/internal/testbed"
)

// peer is a running server of another project.
type peer struct {
	process *testbed.Process
	addr    string
}

// startPeer starts cmd and waits until it listens on addr.
func startPeer(ctx context.Context, name, addr string, cmd *exec.Cmd) (*peer, error) {
	process, err := testbed.Start(name, cmd, nil)
	if err != nil {
		return nil, err
	}
	p := &peer{process, addr}
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	err = await.Success(ctx, func() error {
		if err := process.Signal(0); err != nil {
			cancel() // the process has ended
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

// PIDs returns the ids of the process and its children.
func (p *peer) PIDs() []int { return append([]int{p.process.PID()}, childPIDs(p.process.PID())...) }

// Addr implements [Running].
func (p *peer) Addr() string { return p.addr }

// Stop ends the process with SIGTERM, and then kills what is left of it.
func (p *peer) Stop() error {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()
	err := p.process.End(ctx, syscall.SIGTERM)
	if err != nil {
		err = fmt.Errorf("%w\n%s", err, p.process.Tail(10))
	}
	p.process.Kill()
	return err
}

// Kill implements [Killable].
func (p *peer) Kill() { p.process.Kill() }

// childPIDs returns the children of pid. It skips processes that end meanwhile.
func childPIDs(pid int) (pids []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		stat, err := os.ReadFile(path)
		if err != nil {
			continue
		}
		// proc(5): pid (name) state ppid …, and a name may contain spaces and parentheses.
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

// findProgram returns the path of a program of the distribution. /usr/sbin is not in every user's
// PATH.
func findProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		return path, nil
	}
	if sbin, err := exec.LookPath("/usr/sbin/" + name); err == nil {
		return sbin, nil
	}
	return "", err
}

// moduleFile returns the path of a file of this module.
func moduleFile(ctx context.Context, path ...string) (string, error) {
	dir, err := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "switchboard").Output()
	if err != nil {
		return "", fmt.Errorf("go list -m switchboard: %w", err)
	}
	return filepath.Join(append([]string{strings.TrimSpace(string(dir))}, path...)...), nil
}

// installDebian installs Debian packages. If this is not Debian or the user is not root, the error
// names the packages.
func installDebian(ctx context.Context, log io.Writer, packages ...string) error {
	names := strings.Join(packages, " ")
	if _, err := exec.LookPath("apt-get"); err != nil || os.Geteuid() != 0 {
		return fmt.Errorf("missing: %s (on Debian: apt-get install %s)", names, names)
	}
	script, err := moduleFile(ctx, "bench", "peers", "install")
	if err != nil {
		return err
	}
	logf(log, "installing the Debian packages %s", names)
	return runCommand(exec.CommandContext(ctx, script, packages...))
}

// logf prints a line before work that takes long. A nil log means standard error.
func logf(log io.Writer, format string, args ...any) {
	if log == nil {
		log = os.Stderr
	}
	_, _ = fmt.Fprintf(log, "\n"+format+"\n", args...) // on a new line after a progress line
}

// runCommand runs cmd. An error contains its output.
func runCommand(cmd *exec.Cmd) error {
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	return nil
}

// noBatch implements PublishBatch for a server without batches.
type noBatch struct{}

func (noBatch) PublishBatch(context.Context, []string, [][]byte) error { return errors.ErrUnsupported }

// debianVersion returns the version of an installed Debian package, "" if it is unknown.
func debianVersion(debian string) string {
	out, err := exec.Command("dpkg-query", "-W", "-f", "${Version}", debian).Output()
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(out))
}
