package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"switchboard/cmd/internal/screen"
	"switchboard/internal/procgroup"
)

// maxReply is the most that a command may print, in bytes. The broker has a limit of its own, which
// is lower by default.
const maxReply = 1 << 20

// waitDelay is how long a process that a command has started may keep the standard output open
// after the command has ended.
const waitDelay = 500 * time.Millisecond

// runner runs a command for each request.
type runner struct {
	*app
	command []string
	timeout time.Duration
	slots   chan struct{} // one element for each running command
}

// request is what a broker sends. The command receives its text.
type request struct {
	Ref    int64  `json:"ref"`
	Client string `json:"client"`
}

// failure is the error that a client receives.
type failure struct {
	Code    string          `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// answer runs the command and returns its reply, nil for none, or why it failed. It does not end
// with the context of the runner, so that a request that is taken is answered.
func (r *runner) answer(text []byte) (reply json.RawMessage, failed *failure) {
	r.slots <- struct{}{}
	defer func() { <-r.slots }()
	ctx, cancel := context.WithTimeout(context.Background(), r.timeout)
	defer cancel()
	began := time.Now()
	reply, failed = r.execute(ctx, text)
	r.log(text, failed, time.Since(began))
	return reply, failed
}

func (r *runner) execute(ctx context.Context, text []byte) (json.RawMessage, *failure) {
	cmd := exec.CommandContext(ctx, r.command[0], r.command[1:]...)
	var stdout bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(text), &limited{&stdout, maxReply}, r.stderr
	cmd.Env = r.environ
	// An interrupt on the terminal must not end the command, which answers a request. A command
	// that is too slow is ended with the processes that it has started.
	procgroup.Set(cmd)
	cmd.Cancel = func() error { return procgroup.Kill(cmd.Process) }
	cmd.WaitDelay = waitDelay
	err := cmd.Run()
	if errors.Is(err, exec.ErrWaitDelay) { // the command has succeeded
		err = nil
	}
	out := bytes.TrimSpace(stdout.Bytes())
	switch {
	case ctx.Err() != nil:
		return nil, &failure{Code: "timeout", Message: fmt.Sprintf("no answer within %s", r.timeout)}
	case err != nil:
		return nil, failureIn(out, err)
	case len(out) == 0:
		return nil, nil
	case !json.Valid(out):
		return nil, &failure{Code: "failed", Message: "the answer is not JSON"}
	}
	return out, nil
}

// failureIn returns the failure that a command has printed, or one for err.
func failureIn(out []byte, err error) *failure {
	var printed struct {
		Error *failure `json:"error"`
	}
	if json.Unmarshal(out, &printed) == nil && printed.Error != nil && printed.Error.Code != "" {
		return printed.Error
	}
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		return &failure{Code: "failed", Message: "the command failed"} // its output may be secret
	}
	return &failure{Code: "failed", Message: "the command cannot run"}
}

// log prints a line for a request that is answered.
func (r *runner) log(text []byte, failed *failure, took time.Duration) {
	var q request
	_ = json.Unmarshal(text, &q) // a request without a client is only logged like that
	result, color := "ok", screen.Green
	if failed != nil {
		result, color = failed.Code, screen.Red
	}
	line := map[string]any{"client": q.Client, "ref": q.Ref, "result": result, "ms": took.Milliseconds()}
	if failed != nil {
		line["message"] = failed.Message
	}
	r.screen.Value(line, func() {
		r.screen.Line(screen.Cell{Text: q.Client, Color: screen.Bold}, screen.Cell{Text: number(q.Ref), Color: screen.Dim},
			screen.Cell{Text: result, Color: color}, screen.Cell{Text: fmt.Sprintf("%dms", took.Milliseconds())}, screen.Cell{Text: message(failed)})
	})
}

func message(failed *failure) string {
	if failed == nil {
		return ""
	}
	return strings.TrimSpace(failed.Message)
}

// limited is a buffer that refuses more than left bytes.
type limited struct {
	*bytes.Buffer
	left int
}

// Write implements io.Writer.
func (l *limited) Write(text []byte) (int, error) {
	if l.left -= len(text); l.left < 0 {
		return 0, fmt.Errorf("the answer has more than %d bytes", maxReply)
	}
	return l.Buffer.Write(text)
}
