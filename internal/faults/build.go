package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"switchboard/internal/testbed"
)

// programs are the paths of the programs under test, and of the script with the clients of
// client/js.
type programs struct {
	broker, wrongClock, janitor, sdk string
	former                           formerVersion
}

// clockShift is how far the wrong clock is off, in seconds.
const clockShift = 600

// build builds the programs once for the scenarios. The broker with a wrong clock needs a patched
// standard library, and the former version the history of the clone, so they are built only if they
// are needed.
func build(ctx context.Context, dir string, chosen []scenario) (programs, error) {
	b := programs{
		broker: filepath.Join(dir, "broker"), wrongClock: filepath.Join(dir, "broker-shifted"), janitor: filepath.Join(dir, "janitor"),
	}
	var err error
	if b.sdk, err = findSDK(ctx); err != nil {
		return b, err
	}
	if err := testbed.Build(ctx, "-o", dir+string(filepath.Separator), "switchboard/cmd/broker", "switchboard/cmd/janitor"); err != nil {
		return b, err
	}
	if slices.ContainsFunc(chosen, func(sc scenario) bool { return sc.mixed }) {
		if b.former, err = buildFormer(ctx, dir); err != nil {
			return b, fmt.Errorf("the former version: %w", err)
		}
	}
	if !slices.ContainsFunc(chosen, func(sc scenario) bool { return sc.wrongClock }) {
		return b, nil
	}
	overlay, err := overlayClock(ctx, dir)
	if err != nil {
		return b, fmt.Errorf("broker with a wrong clock: %w", err)
	}
	return b, testbed.Build(ctx, "-overlay", overlay, "-o", b.wrongClock, "switchboard/cmd/broker")
}

// nowSource is the code in package time that reads the wall clock and the monotonic clock. Only the
// seconds of the wall clock are changed.
const nowSource = `func Now() Time {
	sec, nsec, mono := runtimeNow()
`

// overlayClock writes a copy of package time with a wrong wall clock, and the overlay file that
// makes the compiler use it.
func overlayClock(ctx context.Context, dir string) (overlay string, err error) {
	out, err := exec.CommandContext(ctx, "go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	original := filepath.Join(strings.TrimSpace(string(out)), "src", "time", "time.go")
	source, err := os.ReadFile(original)
	if err != nil {
		return "", err
	}
	if n := bytes.Count(source, []byte(nowSource)); n != 1 {
		return "", fmt.Errorf("%s has the text to patch %d times, want once: this Go version reads its clock differently", original, n)
	}
	patched := bytes.Replace(source, []byte(nowSource), fmt.Appendf(nil, "%s\tsec += %d\n", nowSource, clockShift), 1)
	copied := filepath.Join(dir, "time.go")
	if err := os.WriteFile(copied, patched, 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: copied}})
	if err != nil {
		return "", err
	}
	overlay = filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, replace, 0o600)
}
