package main

import (
	"bytes"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"switchboard/bench/progress"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == subscribersCommand { // started by a crowd
		os.Exit(command(os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
	}
	goleak.VerifyTestMain(m)
}

// TestMeasure is a small million.
func TestMeasure(t *testing.T) {
	log, err := os.CreateTemp(t.TempDir(), "progress")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var out bytes.Buffer
	o := options{connections: 50, perBroker: 20, pushes: 2, transport: "ws"}
	if err := measure(t.Context(), o, progress.New(log), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"50 connections (ws), 3 brokers", "| brokers, RSS | 0.", "has it: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("there is no %q in:\n%s", want, &out)
		}
	}
}

func TestRefused(t *testing.T) {
	for args, want := range map[string]string{
		"-n 0":            "above 0",
		"--transport udp": "neither",
		"word":            "belongs to no flag",
	} {
		if _, err := parseOptions(strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := subscribers(ctx, []string{"127.0.0.1:1", "tcp", "1", "c"}, strings.NewReader(""), io.Discard); err == nil {
		t.Error("subscribers of nobody are content")
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1_000: "1,000", 1_000_000: "1,000,000", 12_034_005: "12,034,005"} {
		if got := thousands(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
}
