//go:build long

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestShortLedger plays some of the scenarios with few clients and short leases.
func TestShortLedger(t *testing.T) {
	ctx := t.Context()
	o, err := parseOptions([]string{"--short"}, os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	r := o.runner()
	r.dir, r.logf = t.TempDir(), t.Logf
	var chosen []scenario
	for _, name := range []string{
		"kill -9 broker", "freeze broker", "Sentinel failover, durable", "hints dropped", "rolling restart",
	} {
		chosen = append(chosen, scenarioNamed(t, name))
	}
	if r.programs, err = build(ctx, r.dir, chosen); err != nil {
		t.Fatal(err)
	}
	for _, sc := range chosen {
		t.Run(sc.name, func(t *testing.T) {
			name, result := sc.name, r.run(ctx, sc)
			if len(result.Red) > 0 {
				t.Error(result.explain())
			}
			if s := result.OverSSE; s.Delivered < 100 || s.Resumed == 0 {
				t.Errorf("over Server-Sent Events %d messages were delivered, and %d streams resumed", s.Delivered, s.Resumed)
			}
			if s := result.JavaScript; s.Delivered < 100 || s.Resumed == 0 && name != "hints dropped" || result.ChangesInJS == 0 {
				t.Errorf("to JavaScript %d messages and %d changes were delivered, and %d connections resumed", s.Delivered, result.ChangesInJS, s.Resumed)
			}
			if result.Erasures < 10 || result.Reported < 100 || result.ReadInTheEnd < 50 {
				t.Errorf("%d messages were erased, %d reports arrived, %d messages were read in the end", result.Erasures, result.Reported, result.ReadInTheEnd)
			}
			if result.Delivered < 1000 { // else nothing was shown
				t.Errorf("only %d messages were delivered", result.Delivered)
			}
			if t.Failed() {
				showLogs(t, result.Logs)
			}
		})
	}
	t.Run(killsName, func(t *testing.T) {
		plan, _ := o.kills()
		if result := r.runKills(ctx, plan); len(result.Red) > 0 {
			t.Error(result.explain())
			showLogs(t, result.logs)
		}
	})
}

func scenarioNamed(t *testing.T, name string) scenario {
	t.Helper()
	for _, sc := range scenarios {
		if sc.name == name {
			return sc
		}
	}
	t.Fatalf("there is no scenario %q", name)
	return scenario{}
}

// showLogs prints the ends of the logs of a scenario, those of Redis among them.
func showLogs(t *testing.T, dir string) {
	t.Helper()
	err := fs.WalkDir(os.DirFS(dir), ".", func(name string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(name, ".log") {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, name))
		t.Logf("%s:\n%s", name, text[max(0, len(text)-4000):])
		return err
	})
	if err != nil {
		t.Log(err)
	}
}
