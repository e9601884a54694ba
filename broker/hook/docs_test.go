package hook

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"
)

// example returns the first Node.js example of a file.
func example(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```js\n")
	code, _, ended := strings.Cut(rest, "```")
	if !found || !ended {
		t.Fatalf("%s: there is no example", path)
	}
	return code
}

// TestNodeExample runs the example backend of the documentation and asks it.
func TestNodeExample(t *testing.T) {
	const port = `server.listen(9000, "127.0.0.1")`
	before, after, found := strings.Cut(example(t, "../../docs/webhooks.md")+example(t, "../../docs/access.md"), port)
	if !found {
		t.Fatalf("the example does not end in %s", port)
	}
	node := exec.CommandContext(t.Context(), "node", "-e",
		before+`server.listen(0, "127.0.0.1", () => console.log(server.address().port))`+after)
	node.Dir, node.Stderr = t.TempDir(), os.Stderr
	if err := os.WriteFile(node.Dir+"/hook_secret", []byte(secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := node.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := node.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _, _ = node.Process.Kill(), node.Wait() }()
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	url := "http://127.0.0.1:" + strings.TrimSpace(line)
	ask := func(secret string, q Question) (Answer, Outcome) {
		t.Helper()
		h, err := New(Options{Connect: url, Subscribe: url, Secrets: []string{secret}, Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		defer h.Close()
		q.Since = time.Now()
		a, outcome, _ := h.Ask(t.Context(), q)
		return a, outcome
	}
	if a, outcome := ask(secret, Question{Hook: Connect, User: "bob"}); outcome != Allowed || string(a.Info) != `{"name":"bob"}` {
		t.Errorf("connect: %s, %s", outcome, a.Info)
	}
	for channel, want := range map[string]Outcome{"staff:1": Denied, "chat:1": Allowed} {
		if a, outcome := ask(secret, Question{Hook: Subscribe, User: "bob", Channel: channel}); outcome != want || want == Denied && a.Reason != "staff only" {
			t.Errorf("%s: %s, %+v", channel, outcome, a)
		}
	}
	if _, outcome := ask("another secret, not the same", Question{Hook: Connect}); outcome != Failed {
		t.Errorf("with another secret: %s", outcome)
	}
}
