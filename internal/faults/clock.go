package main

import (
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

//go:embed shim/clock.c
var clockSource []byte

// slowClockEnv builds a library that sets the wall clock of a C program back by clockShift, and
// returns the environment that loads it. It needs a C compiler, as the race detector does.
func slowClockEnv(dir string) (env []string, err error) {
	if err := makeDir(dir); err != nil {
		return nil, err
	}
	source, library := filepath.Join(dir, "clock.c"), filepath.Join(dir, "clock.so")
	if err := os.WriteFile(source, clockSource, 0o600); err != nil {
		return nil, err
	}
	out, err := exec.Command("cc", "-shared", "-fPIC", "-O1", fmt.Sprintf("-DBEHIND=%d", clockShift), "-o", library, source).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("slow clock: cc: %w\n%s", err, out)
	}
	return []string{"LD_PRELOAD=" + library}, nil
}
