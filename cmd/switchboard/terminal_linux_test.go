package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

// terminal is a command on a terminal of its own.
type terminal struct {
	cmd    *exec.Cmd
	master *os.File
	seen   bytes.Buffer // what it has shown
}

// onTerminal starts a command on a pseudo terminal (pty(7)) with 30 lines.
func onTerminal(t *testing.T, environ []string, args ...string) *terminal {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(int(master.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 30, Col: 200})
	}
	if err != nil {
		t.Fatal(err)
	}
	tty, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	c := &terminal{cmd: exec.Command(binary, args...), master: master}
	c.cmd.Env, c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = append(environ, "TERM=xterm"), tty, tty, tty
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = tty.Close()
	t.Cleanup(func() { _ = c.cmd.Process.Kill(); _, _ = c.cmd.Process.Wait(); _ = master.Close() })
	return c
}

// await reads until the command has shown a text.
func (c *terminal) await(t *testing.T, text string) {
	t.Helper()
	buffer := make([]byte, 4096)
	for !strings.Contains(c.seen.String(), text) {
		n, err := c.master.Read(buffer)
		if err != nil {
			t.Fatalf("%v before %q in %q", err, text, &c.seen)
		}
		c.seen.Write(buffer[:n])
	}
	_, rest, _ := strings.Cut(c.seen.String(), text)
	c.seen.Reset()
	c.seen.WriteString(rest)
}

func (c *terminal) enter(t *testing.T, text string) {
	t.Helper()
	if _, err := c.master.WriteString(text); err != nil {
		t.Fatal(err)
	}
}

// TestTopOnTerminal: top draws one picture over the other, and restores the terminal.
func TestTopOnTerminal(t *testing.T) {
	b := startBroker(t, nil)
	c := onTerminal(t, []string{"SWITCHBOARD_URL=" + b.url}, "top", "--interval=100ms")
	c.await(t, "\x1b[?1049h")
	for range 2 {
		c.await(t, "\x1b[H"+b.url)
		c.await(t, "CONNECTIONS")
		c.await(t, "total")
	}
	c.enter(t, "\x03") // Ctrl-C
	c.await(t, "\x1b[?1049l")
	if err := c.cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestConnectOnTerminal: commands are typed, and a refused one does not end the session.
func TestConnectOnTerminal(t *testing.T) {
	b := startBroker(t, nil)
	c := onTerminal(t, []string{"SWITCHBOARD_URL=" + b.url}, "connect", "--user=alice")
	c.await(t, "help lists the commands")
	c.enter(t, "help\n")
	c.await(t, "publish CHANNEL DATA")
	c.enter(t, "bogus\n")
	c.await(t, `"type":"error"`)
	c.enter(t, "publish news hello\n")
	c.await(t, `"type":"published"`)
	c.enter(t, "\x04") // Ctrl-D
	if err := c.cmd.Wait(); err != nil {
		t.Error(err)
	}
}
