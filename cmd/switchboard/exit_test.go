package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"switchboard/client/backend"
	"switchboard/cmd/internal/screen"
)

// brokenPipe is an output whose reader has ended.
type brokenPipe struct{}

func (brokenPipe) Write([]byte) (int, error) { return 0, errPipeClosed }

// TestBrokenPipe: if the reader of the output has ended, that is a success. If a broker has closed
// a connection, it is not.
func TestBrokenPipe(t *testing.T) {
	var stderr bytes.Buffer
	a := &app{stderr: &stderr, started: true, screen: screen.New(brokenPipe{}, false, "never", os.Getenv)}
	lost := &backend.UnreachableError{URL: "http://127.0.0.1:1", Sent: true, Err: errPipeClosed}
	if code := a.exit(lost); code != exitUnavailable || !strings.Contains(stderr.String(), "no answer") {
		t.Errorf("a lost call: %d, %s", code, &stderr)
	}
	a.screen.Text("a line")
	if code := a.exit(a.screen.Err()); code != exitOK {
		t.Errorf("a lost line: %d", code)
	}
}

// TestTailCount: two streams print no more than --count messages together.
func TestTailCount(t *testing.T) {
	var out bytes.Buffer
	ctx, stop := context.WithCancel(t.Context())
	follow := &tail{
		app: &app{screen: screen.New(&out, false, "never", os.Getenv)}, flags: tailFlags{count: 1}, stop: stop,
		positions: positions{ids: map[string]int64{}},
	}
	for _, name := range []string{"news", "sports"} {
		if err := follow.print(stream{kind: "channel", name: name}, []backend.Message{{ID: 1}}, 1); err != nil {
			t.Error(err)
		}
	}
	if strings.Count(out.String(), "\n") != 1 || ctx.Err() == nil || len(follow.positions.ids) != 1 {
		t.Errorf("%q, positions %v", &out, follow.positions.ids)
	}
}

// TestTailPosition: the position is stored before the first message.
func TestTailPosition(t *testing.T) {
	b := startBroker(t, nil)
	position := filepath.Join(t.TempDir(), "position")
	first := follow(t, []string{"SWITCHBOARD_URL=" + b.url}, "tail", "news", "--position", position)
	eventually(t, "the position is stored", func() bool { _, err := os.Stat(position); return err == nil })
	first.interrupt(t)
	b.ok(t, "push", "news", "1")
	if out := b.ok(t, "tail", "news", "--count=1", "--position", position); !strings.HasSuffix(out, "\t1\n") {
		t.Errorf("%q", out)
	}
}

// TestLoadWithoutBroker: load does not wait for a broker.
func TestLoadWithoutBroker(t *testing.T) {
	if r := (broker{url: "http://127.0.0.1:1"}).cli(t, "load", "--retry-for=0"); r.Code != exitUnavailable {
		t.Errorf("%+v", r)
	}
}

// TestOrphan: a command is complete when it has ended, also if a process that it has
// started keeps its output open.
func TestOrphan(t *testing.T) {
	r := &runner{
		app:     &app{environ: os.Environ(), stderr: new(bytes.Buffer), screen: screen.New(new(bytes.Buffer), false, "never", os.Getenv)},
		command: []string{"sh", "-c", "sleep 60 & echo $!"}, timeout: timeout, slots: make(chan struct{}, 1),
	}
	reply, failed := r.answer([]byte("{}"))
	left, err := strconv.Atoi(string(reply))
	if failed != nil || err != nil {
		t.Fatalf("%s, %+v", reply, failed)
	}
	orphan, err := os.FindProcess(left)
	if err == nil {
		err = orphan.Kill()
	}
	if err != nil {
		t.Errorf("the process that outlives the command: %v", err)
	}
}
