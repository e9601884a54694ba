//go:build long

package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestLiveData runs the backend and the page of docs/guides/live-data.md, while orders change and
// pages come and lose their connections. In the end each page shows what the database has.
func TestLiveData(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	broker := startMemory(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	orders := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(orders)
	if err != nil {
		t.Fatal(err)
	}
	dir := writeSample(t, "../../docs/guides/live-data.md", docAddress, broker.HTTP, "127.0.0.1:9000", orders, "listen(9000", "listen("+port)

	const awaitBackend = `import("./live/backend.mjs").then(async () => {
		while (!(await fetch("http://" + process.argv[1]).catch(() => {})));
		console.log("ready");
	});`
	backend := exec.CommandContext(ctx, "node", "-e", awaitBackend, orders)
	backend.Dir = dir
	backend.Stderr = os.Stderr
	lines, err := backend.StdoutPipe()
	if err == nil {
		err = backend.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cancel(); _ = backend.Wait() })
	if _, err := bufio.NewReader(lines).ReadString('\n'); err != nil { // ready
		t.Fatal(err)
	}

	args, err := json.Marshal(map[string]string{
		"broker": "ws://" + broker.HTTP + "/ws", "orders": "http://" + orders + "/orders", "module": filepath.Join(dir, "live", "orders.mjs"),
	})
	if err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(ctx, "node", "js/livedata.js", string(args)).CombinedOutput()
	if want := `{"pages":24}`; err != nil || !strings.HasSuffix(strings.TrimSpace(string(out)), want) {
		t.Fatalf("%v\n%s\nwant %s", err, out, want)
	}
}

// writeSample writes the programs of a document, whose first lines have their names, beside the
// packages that they use. Pairs of replacements change them.
func writeSample(t *testing.T, document string, replace ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	client, err := filepath.Abs("../../client/js")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "node_modules"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(client, filepath.Join(dir, "node_modules", "switchboard-client")); err != nil {
		t.Fatal(err)
	}
	for _, code := range readDoc(t, document).blocks("js") {
		first, _, _ := strings.Cut(code, "\n")
		path := filepath.Join(dir, strings.TrimPrefix(first, "// "))
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err == nil {
			err = os.WriteFile(path, []byte(strings.NewReplacer(replace...).Replace(code)), 0o600)
		}
		if err != nil {
			t.Fatal(fmt.Errorf("the sample %s: %w", first, err))
		}
	}
	return dir
}
