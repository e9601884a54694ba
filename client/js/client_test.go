package js_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"switchboard/internal/apicheck"
)

// TestClient runs the tests of the client in Node, with a fake WebSocket. The states that the
// client computes are compared with those of vectors, see [writeVectors]. The calls of the entry
// for backends are compared with the OpenAPI document.
func TestClient(t *testing.T) {
	t.Parallel()
	readSources(t)
	cmd := exec.CommandContext(t.Context(), "node", "test/run.mjs", t.TempDir())
	calls := filepath.Join(t.TempDir(), "calls.json")
	cmd.Env = append(os.Environ(), "NODE_NO_WARNINGS=1", "SWITCHBOARD_VECTORS="+writeVectors(t), "SWITCHBOARD_CALLS="+calls)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	checkCalls(t, calls)
}

// readSources reads what the programs that a test starts will read, so that the cache of test
// results depends on it.
func readSources(t *testing.T) {
	t.Helper()
	for _, dir := range []string{"src", "test"} {
		readFiles(t, dir)
	}
	for _, name := range []string{"build.mjs", "package.json", "package-lock.json", "tsconfig.json", "tsconfig.test.json"} {
		if _, err := os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
}

// checkCalls compares the calls in a file, those of each method of Backend and Kit, with the
// OpenAPI document.
func checkCalls(t *testing.T, path string) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var calls []apicheck.Call
	if err := json.Unmarshal(text, &calls); err != nil {
		t.Fatal(err)
	}
	problems, err := apicheck.Compare(calls)
	if err != nil {
		t.Fatal(err)
	}
	for _, problem := range problems {
		t.Error(problem)
	}
}

// TestTypes checks the types of the sources and the tests, and those of the built package:
// test/types uses all of its API, as an application does.
func TestTypes(t *testing.T) {
	t.Parallel()
	readSources(t)
	for _, project := range []string{"tsconfig.test.json", "test/types"} {
		cmd := exec.CommandContext(t.Context(), "node_modules/.bin/tsc", "-p", project)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v\n%s", project, err, out)
		}
	}
}

// TestFormat checks the format of the sources, like gofmt.
func TestFormat(t *testing.T) {
	t.Parallel()
	readSources(t)
	cmd := exec.CommandContext(t.Context(), "node_modules/.bin/prettier", "--check", "src", "test", "size", "build.mjs")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("run `npx prettier --write` in client/js: %v\n%s", err, out)
	}
}
