package js_test

import (
	"os"
	"os/exec"
	"testing"
)

// TestClient runs the tests of the client in Node, with a fake WebSocket. The states that the
// client computes are compared with those of vectors, see [writeVectors].
func TestClient(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "node", "test/run.mjs", t.TempDir())
	cmd.Env = append(os.Environ(), "NODE_NO_WARNINGS=1", "SWITCHBOARD_VECTORS="+writeVectors(t))
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestTypes checks the types of the sources and the tests, and those of the built package:
// test/types uses all of its API, as an application does.
func TestTypes(t *testing.T) {
	t.Parallel()
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
	cmd := exec.CommandContext(t.Context(), "node_modules/.bin/prettier", "--check", "src", "test", "size", "build.mjs")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("run `npx prettier --write` in client/js: %v\n%s", err, out)
	}
}
