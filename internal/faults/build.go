package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// binaries are the programs under test.
type binaries struct{ broker, shifted, janitor string }

// shift is how wrong the wall clock of the shifted broker is, in seconds.
const shift = 600

// build makes the programs once, for all scenarios; the shifted one, which takes a Go of its
// own, only where one of them wants it.
func build(ctx context.Context, dir string, shifted bool) (binaries, error) {
	b := binaries{
		broker: filepath.Join(dir, "broker"), shifted: filepath.Join(dir, "broker-shifted"), janitor: filepath.Join(dir, "janitor"),
	}
	if err := goBuild(ctx, "-o", dir+string(filepath.Separator), "switchboard/cmd/broker", "switchboard/cmd/janitor"); err != nil {
		return b, err
	}
	if !shifted {
		return b, nil
	}
	overlay, err := shiftClock(ctx, dir)
	if err != nil {
		return b, fmt.Errorf("a broker with a wrong clock: %w", err)
	}
	return b, goBuild(ctx, "-overlay", overlay, "-o", b.shifted, "switchboard/cmd/broker")
}

func goBuild(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", append([]string{"build"}, args...)...)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", cmd.Args, err, out)
	}
	return nil
}

// nowSource is the place of package time where the wall clock is read, together with the
// monotonic one, which stays right: only the seconds of the former are shifted.
const nowSource = `func Now() Time {
	sec, nsec, mono := runtimeNow()
`

// shiftClock writes a copy of package time with a wrong wall clock, and the overlay that
// puts it in place.
func shiftClock(ctx context.Context, dir string) (overlay string, err error) {
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
		return "", fmt.Errorf("%s has the text to patch %d times, want once: this Go reads its clock in another way", original, n)
	}
	patched := bytes.Replace(source, []byte(nowSource), fmt.Appendf(nil, "%s\tsec += %d\n", nowSource, shift), 1)
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
