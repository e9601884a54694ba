// Package declarations builds the TypeScript declarations of the JavaScript client. They are not
// committed, so tests that compile TypeScript build them first.
package declarations

import (
	"os/exec"
	"testing"
)

// Build builds the declarations into client/js/dist, where client is the path of client/js. It
// writes only what has changed, so that tests of several packages may call it at once.
func Build(t testing.TB, client string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "node", "types.mjs")
	cmd.Dir = client
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("the declarations of %s: %v\n%s\nif packages are missing: make install-test-tools", client, err, out)
	}
}
