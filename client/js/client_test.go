package js_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"switchboard/internal/apicheck"
	"switchboard/internal/declarations"
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
	for _, name := range []string{"build.mjs", "types.mjs", "package.json", "package-lock.json", "tsconfig.json", "tsconfig.test.json"} {
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
	checkResults(t, calls)
}

// ignored are the methods that return nothing of their answer.
var ignored = map[string]bool{
	"Backend.notify": true, "Backend.reply": true, "Kit.deleteRoom": true, "Kit.leaveRoom": true, "Kit.kick": true, "Kit.operateRoom": true,
	"Kit.deleteResource": true, "Kit.deleteSession": true,
}

// checkResults compares the types of the results of the methods with the OpenAPI document.
func checkResults(t *testing.T, calls []apicheck.Call) {
	t.Helper()
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	module, err := apicheck.TypeScript(calls, filepath.Join(here, "src/server/index.js"), ignored, nil)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf(`{"extends":%q,"include":["*.ts"],"compilerOptions":{"rootDir":"/","typeRoots":[%q]}}`,
		filepath.Join(here, "tsconfig.test.json"), filepath.Join(here, "node_modules/@types"))
	for name, text := range map[string]string{"results.ts": module, "tsconfig.json": config, "package.json": `{"type":"module"}`} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.CommandContext(t.Context(), "node_modules/.bin/tsc", "-p", dir)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("the types of results differ from the document: %v\n%s", err, out)
	}
}

// TestTypes checks the types of the sources and the tests, and those of the built package:
// test/types uses all of its API, as an application does.
func TestTypes(t *testing.T) {
	t.Parallel()
	readSources(t)
	declarations.Build(t, ".")
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
	cmd := exec.CommandContext(t.Context(), "node_modules/.bin/prettier", "--check", "src", "test", "size", "build.mjs", "types.mjs")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("run `npx prettier --write` in client/js: %v\n%s", err, out)
	}
}

// TestReadme checks that the examples use no channels of the kit, which refuses them.
func TestReadme(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, use := range regexp.MustCompile(`channel(<[^(]*>)?\("(room|lobby|hold|board|scene|account):[^"]*"`).FindAll(text, -1) {
		t.Errorf("%s) is a channel of the kit", use)
	}
}
