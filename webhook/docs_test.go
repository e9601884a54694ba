package webhook

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// TestNodeExample runs the Node.js example of the documentation.
func TestNodeExample(t *testing.T) {
	text, err := os.ReadFile("../docs/webhooks.md")
	ok(t, err)
	_, rest, found := strings.Cut(string(text), "```js\n")
	code, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatal("docs/webhooks.md has no Node.js example")
	}
	const driver = `
const cases = JSON.parse(require("node:fs").readFileSync(0));
console.log(JSON.stringify(cases.map((c) => verify(c.secrets, c.headers, Buffer.from(c.body)))));`
	type verifyCase struct {
		Secrets []string          `json:"secrets"`
		Headers map[string]string `json:"headers"`
		Body    string            `json:"body"`
	}
	headers := func(at time.Time, secrets ...string) map[string]string {
		h := signedAt(at, `{"events":["ü"]}`, secrets...)
		return map[string]string{
			"switchboard-timestamp": h.Get(TimestampHeader), "switchboard-signature": h.Get(SignatureHeader),
		}
	}
	now, body := time.Now(), `{"events":["ü"]}`
	input, err := json.Marshal([]verifyCase{
		{[]string{"new"}, headers(now, "old", "new"), body},
		{[]string{"newest", "old"}, headers(now, "old", "new"), body},
		{[]string{"other"}, headers(now, "old", "new"), body},
		{[]string{"new"}, headers(now, "old", "new"), body + " "},
		{[]string{"new"}, headers(now.Add(-time.Hour), "new"), body},
		{[]string{"new"}, map[string]string{}, body},
		{[]string{}, headers(now, "new"), body},
	})
	ok(t, err)
	node := exec.CommandContext(t.Context(), "node", "-e", code+driver)
	node.Stdin = bytes.NewReader(input)
	out, err := node.CombinedOutput()
	if want := "[true,true,false,false,false,false,false]"; err != nil || strings.TrimSpace(string(out)) != want {
		t.Errorf("node: %v\n%s\nwant %s", err, out, want)
	}
}
