package snippets

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// linkClone makes a directory with links to all that the repository has.
func linkClone(t *testing.T, dir string) {
	t.Helper()
	repository, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(repository)
	if err == nil {
		err = os.Mkdir(dir, 0o700)
	}
	for _, e := range entries {
		err = errors.Join(err, os.Symlink(filepath.Join(repository, e.Name()), filepath.Join(dir, e.Name())))
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestOutside follows the README in a directory beside the clone: a program of another module finds
// the Go client by replace, is compiled, and receives a message of a broker.
func TestOutside(t *testing.T) {
	var setup, program, start string
	for _, b := range blocksOf(t, "README.md") {
		switch {
		case b.language == "sh" && strings.Contains(b.code, "go mod init"):
			setup = b.code
		case b.language == "go" && b.file() == "main.go":
			program = b.code
		case b.language == "sh" && b.first() == "go mod tidy":
			start = b.code
		}
	}
	if setup == "" || program == "" || start == "" {
		t.Fatal("the README does not show how a program of another module uses the client")
	}
	dir := t.TempDir()
	linkClone(t, filepath.Join(dir, "switchboard"))
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	sh := newShell(ctx, t, "README.md")
	if _, failed := sh.step("make run\n"); failed != "" {
		t.Fatal(failed)
	}
	bash := func(dir, script string) {
		t.Helper()
		cmd := exec.CommandContext(ctx, "bash", "-e", "-c", script)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", script, err, out)
		}
	}
	app := filepath.Join(dir, "app")
	bash(filepath.Join(dir, "switchboard"), setup)
	if err := os.WriteFile(filepath.Join(app, "main.go"), []byte(sh.mapped(program)), 0o600); err != nil {
		t.Fatal(err)
	}
	bash(app, strings.Replace(start, "go run .", "go build -o program .", 1))
	cmd := exec.CommandContext(ctx, filepath.Join(app, "program"))
	var log bytes.Buffer
	cmd.Stderr = &log
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	// The queue of the client keeps the message, whenever the client connects.
	if _, failed := sh.step(sh.mapped(`curl -sf 127.0.0.1:8080/v1/push -d '{"client":"alice/laptop","data":{"hello":1}}'` + "\n")); failed != "" {
		t.Fatal(failed)
	}
	line := make([]byte, 200)
	n, err := out.Read(line)
	if !strings.Contains(string(line[:n]), `{"hello":1}`) {
		t.Errorf("the program printed %q, %v\n%s", line[:n], err, &log)
	}
}
