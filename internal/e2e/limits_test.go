//go:build long

package e2e

import (
	"context"
	"os/exec"
	"testing"

	"switchboard/internal/testbed"
)

// TestJavaScriptLimits runs js/limits.js with a broker in memory: a client that gives bad data,
// large data, too many channels and thousands of messages at once loses no connection, and gets an
// answer for each.
func TestJavaScriptLimits(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	b := startBroker(t, "broker", "", []string{"SWITCHBOARD_LIMITS_MESSAGE_RATE=2500"}) // so that the test is short
	var last string
	node := testbed.Run(t, "node", exec.Command("node", "js/limits.js", b.HTTP), func(text []byte) { last = string(text) })
	if code, err := node.Wait(ctx); err != nil || code != 0 {
		t.Fatalf("node exited with %d (%v), want 0", code, err)
	}
	if last != `{"done":true}` {
		t.Errorf("the script ended with %q", last)
	}
}
