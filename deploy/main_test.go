//go:build deploy

package deploy

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"switchboard/internal/testbed"
)

// testTimeout bounds every wait of a test.
const testTimeout = time.Minute

// bin is a directory with the static programs of this repository.
var bin string

// TestMain builds the programs as the packages do: static, and without paths of this machine.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	err := os.Setenv("CGO_ENABLED", "0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return testbed.Main(&bin, func() int {
		if err := os.Unsetenv("CGO_ENABLED"); err != nil { // the tools are built as usual
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}, "-trimpath", "-ldflags=-s -w", "../cmd/broker", "../cmd/janitor", "../cmd/switchboard")
}

// within returns a context that ends with the test, or after testTimeout.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	t.Cleanup(cancel)
	return ctx
}

// readFile returns the text of a file.
func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// writeFile writes a file that all users may read, and makes its directory.
func writeFile(t *testing.T, path, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}
