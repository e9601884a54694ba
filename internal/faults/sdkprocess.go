package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"sync"

	"switchboard/internal/cond"
	"switchboard/internal/testbed"
)

// sdkScript runs the clients of client/js. Its path is relative to the root of the repository.
const sdkScript = "internal/faults/sdk.mjs"

// sdkNeeds are the files that the script imports, and how to get them.
var sdkNeeds = []struct{ path, from string }{
	{"client/js/dist/index.js", "`make js` builds it"},
	{"internal/e2e/js/node_modules/ws/package.json", ".ci/install installs it"},
}

// findSDK returns the path of the script.
func findSDK(ctx context.Context) (string, error) {
	mod, err := exec.CommandContext(ctx, "go", "env", "GOMOD").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOMOD: %w", err)
	}
	root := filepath.Dir(string(bytes.TrimSpace(mod)))
	return filepath.Join(root, sdkScript), checkSDK(root)
}

// checkSDK returns an error that says what the script lacks.
func checkSDK(root string) error {
	var missing []error
	if _, err := exec.LookPath("node"); err != nil {
		missing = append(missing, fmt.Errorf("%w: .ci/install installs it", err))
	}
	for _, need := range sdkNeeds {
		if _, err := os.Stat(filepath.Join(root, need.path)); err != nil {
			missing = append(missing, fmt.Errorf("%w: %s", err, need.from))
		}
	}
	if err := errors.Join(missing...); err != nil {
		return fmt.Errorf("the clients of client/js cannot run: %w", err)
	}
	return nil
}

// sdkProcess is the Node process with all clients of client/js of a scenario.
type sdkProcess struct {
	proc   *testbed.Process
	exited chan struct{} // closed when the process has ended

	mu    sync.Mutex // guards input
	input io.WriteCloser

	cond    cond.Cond             // guards the fields below
	clients map[string]*sdkClient // by client id
	held    int                   // clients that still have to report their fields
	invalid []string              // lines that are no events
}

// startSDK starts the process, without clients.
func startSDK(script string) (*sdkProcess, error) {
	cmd := exec.Command("node", script)
	cmd.Env = testbed.Environ()
	input, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	p := &sdkProcess{exited: make(chan struct{}), input: input, clients: map[string]*sdkClient{}}
	if p.proc, err = testbed.Start("node", cmd, p.handleLine); err != nil {
		return nil, err
	}
	go func() {
		_, _ = p.proc.Wait(context.Background())
		p.cond.Change(func() { close(p.exited) })
	}()
	return p, nil
}

// send writes a command.
func (p *sdkProcess) send(name string, argument any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return json.NewEncoder(p.input).Encode(map[string]any{name: argument})
}

// handleLine handles a line of the process. They come one after another.
func (p *sdkProcess) handleLine(line []byte) {
	var e sdkEvent
	err := json.Unmarshal(line, &e)
	p.cond.Lock()
	c := p.clients[e.Client]
	p.cond.Unlock()
	if err != nil || c == nil {
		p.cond.Change(func() { p.invalid = append(p.invalid, fmt.Sprintf("%.200s", line)) })
		return
	}
	c.handle(e)
}

// readHeld makes all clients that follow a state report its fields, and waits until they have.
func (p *sdkProcess) readHeld(ctx context.Context) error {
	p.cond.Change(func() {
		for _, c := range p.clients {
			if c.client.state != "" {
				p.held++
			}
		}
	})
	if err := p.send("held", true); err != nil {
		return err
	}
	return p.cond.Await(ctx, func() bool { return p.held == 0 || p.hasExited() })
}

func (p *sdkProcess) hasExited() bool {
	select {
	case <-p.exited:
		return true
	default:
		return false
	}
}

// stop ends the process. The error says what it wrote that was not expected.
func (p *sdkProcess) stop() error {
	_ = p.input.Close()
	p.proc.Kill()
	p.cond.Lock()
	defer p.cond.Unlock()
	if len(p.invalid) > 0 {
		return fmt.Errorf("node wrote %d invalid lines: %q", len(p.invalid), p.invalid[0])
	}
	return nil
}
