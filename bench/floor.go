package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"

	"switchboard/bench/progress"
	"switchboard/bench/swarm"
	"switchboard/bench/system"
)

// floorCommand as the first argument makes this program the floor's writer process.
const floorCommand = "floor-writer"

// measureFloor starts the writer process, which writes every message to every connection, one
// message at a time. The subscribers are the same as in the broker's run.
func measureFloor(ctx context.Context, o options, p *progress.Line) (_ *system.FloorReport, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p.Stage("floor: bare write(2) to %d sockets", o.connections)
	framing := "lines"
	if webSocketPaths[o.transport] != "" {
		framing = "frames"
	}
	cmd := exec.CommandContext(ctx, self, floorCommand, fmt.Sprint(o.connections), framing, o.channelNames()[0])
	messages, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var log tailBuffer
	cmd.Stderr = &log
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	answers := bufio.NewReader(out)
	err = runFloorRounds(ctx, o, p, messages, answers)
	if err != nil {
		_ = cmd.Process.Kill()
	}
	_ = messages.Close() // the writer then sends its report; an error here also fails the decoding
	var res system.FloorReport
	decodeErr := json.NewDecoder(answers).Decode(&res)
	if waitErr := cmd.Wait(); err == nil && waitErr != nil {
		err = fmt.Errorf("the writer: %w\n%s", waitErr, log.String())
	}
	if err == nil && decodeErr != nil {
		err = fmt.Errorf("the writer's report: %w", decodeErr)
	}
	return &res, err
}

// runFloorRounds connects to the writer. It requests the next message after all connections have
// received the previous one.
func runFloorRounds(ctx context.Context, o options, p *progress.Line, messages io.Writer, answers *bufio.Reader) (err error) {
	addr, err := answers.ReadString('\n')
	if err != nil {
		return fmt.Errorf("the writer's address: %w", err)
	}
	s, err := swarm.New(swarm.Options{
		Addr: strings.TrimSpace(addr), Dialect: &swarm.SendOnly{Switchboard: swarm.Switchboard{Path: webSocketPaths[o.transport]}}, Connections: o.connections,
		Channels: o.channelNames()[:1], Payload: payload(o.size), Stall: o.stall,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.Open(ctx, func() { p.Show("floor: %d of %d connections", s.Ready(), o.connections) }); err != nil {
		return err
	}
	ids, line := make([]int64, o.messages), append(payload(o.size), '\n')
	for i := range ids {
		ids[i] = system.FirstID + int64(i)
		if _, err := messages.Write(line); err != nil {
			return fmt.Errorf("send to the writer: %w", err)
		}
		want := int64(i+1) * int64(o.connections)
		err := s.Until(ctx, "receive", func() bool {
			got, _ := s.Received()
			p.Show("floor: %d of %d messages", i, o.messages)
			return got >= want
		})
		if err != nil {
			return err
		}
	}
	if wrong, faults := s.Verify([][]int64{ids}); wrong > 0 {
		return fmt.Errorf("%d faults: %s", wrong, faults[0])
	}
	return nil
}
