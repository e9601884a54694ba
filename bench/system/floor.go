package system

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"

	"switchboard/bench/swarm"
)

// Floor is a process that only calls write(2) with each message on every socket.
type Floor struct {
	// Command runs FloorWriter. Start appends the arguments of FloorWriter.
	Command []string
	Channel string // name of the only channel
}

// Start starts the process, which then waits for s.Clients connections.
func (f *Floor) Start(_ context.Context, s Setup) (Running, error) {
	r := &floor{connections: s.Clients}
	if s.Transport == "ws" || s.Transport == "http" {
		r.path = "/"
	}
	framing := map[bool]string{false: "lines", true: "frames"}[r.path != ""]
	args := append(f.Command[1:len(f.Command):len(f.Command)], fmt.Sprint(s.Clients), framing, f.Channel)
	r.cmd = exec.Command(f.Command[0], args...)
	var err error
	if r.in, err = r.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := r.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	r.out = bufio.NewReader(out)
	addr, err := r.out.ReadString('\n')
	if err != nil {
		return nil, errors.Join(fmt.Errorf("the floor's address: %w", err), r.Stop())
	}
	r.addr = strings.TrimSpace(addr)
	return r, nil
}

type floor struct {
	cmd         *exec.Cmd
	in          io.WriteCloser
	out         *bufio.Reader
	addr, path  string
	connections int
}

func (r *floor) PIDs() []int  { return []int{r.cmd.Process.Pid} }
func (r *floor) Addr() string { return r.addr }

func (r *floor) Dialect() swarm.Dialect {
	return &swarm.SendOnly{Switchboard: swarm.Switchboard{Path: r.path}}
}

// Publisher returns the only publisher. The floor does not acknowledge: publish the next message
// after all connections have received the last.
func (r *floor) Publisher() (Publisher, error) { return floorPublisher{r.in}, nil }

// Stop kills the process, because it does not end by itself before all connections are established.
func (r *floor) Stop() error {
	err := r.in.Close()
	_ = r.cmd.Process.Kill()
	_ = r.cmd.Wait()
	return err
}

type floorPublisher struct{ in io.Writer }

func (p floorPublisher) Publish(_ context.Context, _ string, data []byte) error {
	_, err := p.in.Write(append(data[:len(data):len(data)], '\n'))
	return err
}

func (p floorPublisher) PublishBatch(context.Context, []string, [][]byte) error {
	return errors.ErrUnsupported
}

func (p floorPublisher) Close() error { return nil }
