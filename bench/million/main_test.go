//go:build long

package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"switchboard/bench/progress"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == subscribersCommand { // started by a subscriberProcess
		os.Exit(command(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// TestMeasure runs a small measurement.
func TestMeasure(t *testing.T) {
	log, err := os.CreateTemp(t.TempDir(), "progress")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var out bytes.Buffer
	o := options{
		connections: 50, perBroker: 20, pushes: 2, transport: "ws", out: filepath.Join(t.TempDir(), "MILLION.md"),
		time: 5 * time.Minute, // includes building the broker
	}
	if err := o.run(t.Context(), progress.New(log), &out); err != nil {
		t.Fatal(err)
	}
	if written, err := os.ReadFile(o.out); err != nil || !bytes.Equal(written, out.Bytes()) {
		t.Errorf("the file differs from what was printed: %v", err)
	}
	for _, want := range []string{"50 connections (ws), 3 brokers", "| kernel: sockets", "| brokers, RSS | 0.", "have received it: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &out)
		}
	}
}

func TestWrongArguments(t *testing.T) {
	for args, want := range map[string]string{
		"-n 0":            "above 0",
		"--transport udp": "neither",
		"word":            "unexpected argument",
	} {
		if _, err := parseOptions(strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := runSubscribers(ctx, []string{"127.0.0.1:1", "tcp", "1", "c"}, strings.NewReader(""), io.Discard); err == nil {
		t.Error("subscribers without a server return no error")
	}
}

// TestMemory checks that a run that is too big does not start, and that a run ends when memory is
// low.
func TestMemory(t *testing.T) {
	err := measure(t.Context(), options{connections: 1 << 40, perBroker: 1 << 20}, nil, io.Discard)
	if !errors.Is(err, errMemory) {
		t.Errorf("got %v", err)
	}
	left := []int64{minFree, minFree - 1}
	ctx, cancel := context.WithCancelCause(t.Context())
	watchMemory(ctx, cancel, func() (int64, error) {
		free := left[0]
		left = left[1:]
		return free, nil
	})
	if err := context.Cause(ctx); !errors.Is(err, errMemory) || len(left) > 0 {
		t.Errorf("got %v", err)
	}
}
