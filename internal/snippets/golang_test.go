package snippets

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// imports are the packages that the Go blocks use by name.
var imports = map[string]string{
	"client": "switchboard/client", "webhook": "switchboard/webhook", "broker": "switchboard/broker", "extension": "switchboard/broker/extension", "index": "switchboard/kit/index",
	"backend": "switchboard/client/backend", "board": "switchboard/client/board", "hold": "switchboard/client/hold",
	"room": "switchboard/client/room", "scene": "switchboard/client/scene", "account": "switchboard/client/account",
	"context": "context", "errors": "errors", "fmt": "fmt", "http": "net/http", "io": "io", "json": "encoding/json", "log": "log",
	"os": "os", "signal": "os/signal", "time": "time",
}

// kit names the packages of the kit in pages whose blocks extend a broker.
var kit = map[string]string{"account": "switchboard/kit/account"}

// surroundings declares what the blocks take from the reader's program.
const surroundings = `
	ctx context.Context, w http.ResponseWriter, r *http.Request, urls []string, name, password string, c *client.Client,
	options *broker.Options, key ed25519.PrivateKey, pipe *redispipe.Pipe, prefix string, position []int, show func(any), pay func(string, time.Time),
`

// packageUse matches the use of a package.
var packageUse = regexp.MustCompile(`\b([a-z]+)\.[A-Z]`)

// goFile returns a file of package docs that holds the block in a function. Unused variables are
// used, since a block may end before their use.
func goFile(n int, b block) string {
	if strings.HasPrefix(b.code, "package ") || strings.HasPrefix(b.first(), "// ") && strings.Contains(b.code, "\npackage ") {
		return b.code
	}
	used := map[string]string{"context": "context", "http": "net/http", "client": imports["client"], "broker": imports["broker"], "time": "time"}
	for _, m := range packageUse.FindAllStringSubmatch(b.code, -1) {
		path := imports[m[1]]
		if strings.Contains(b.code, "extension.Host") && kit[m[1]] != "" {
			path = kit[m[1]]
		}
		// A variable may have the name of a package, but then the block does not use the package.
		if path != "" && (!strings.Contains(b.code, m[1]+", err :=") && !strings.Contains(b.code, m[1]+" :=") || strings.Contains(b.code, m[1]+".New(")) {
			used[m[1]] = path
		}
	}
	var f strings.Builder
	f.WriteString("package docs\n\nimport (\n\t\"crypto/ed25519\"\n\t\"switchboard/internal/redispipe\"\n")
	for _, path := range slices.Sorted(maps.Values(used)) {
		fmt.Fprintf(&f, "\t%q\n", path)
	}
	fmt.Fprintf(&f, ")\n\nfunc snippet%d(%s) (failed error) {\n\tvar err error\n\t_ = err\n//line %s:%d\n%s\n\treturn nil\n}\n",
		n, strings.Join(strings.Fields(surroundings), " "), b.page, b.line, b.code)
	return f.String()
}

// unused matches errors about variables that a block declares and does not use, and its := of err.
var unused = regexp.MustCompile(`declared and not used|no new variables on left side|^#|too many errors`)

// TestGo compiles all Go blocks, as files that exist only in an overlay.
func TestGo(t *testing.T) {
	dir, overlay := t.TempDir(), map[string]string{}
	absolute, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, page := range pages(t) {
		for _, b := range blocksOf(t, page) {
			if b.language != "go" || skipped(b) {
				continue
			}
			n++
			file, folder := filepath.Join(dir, fmt.Sprintf("%d.go", n)), "docs"
			if strings.Contains(b.code, "package main") {
				folder = fmt.Sprintf("main%d", n)
			}
			if err := os.WriteFile(file, []byte(goFile(n, b)), 0o600); err != nil {
				t.Fatal(err)
			}
			overlay[filepath.Join(absolute, "internal/snippets/generated", folder, filepath.Base(file))] = file
		}
	}
	replace, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(dir+"/overlay.json", replace, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "-overlay", dir+"/overlay.json", "./internal/snippets/generated/...")
	cmd.Dir = root
	out, err := cmd.CombinedOutput()
	if n == 0 || err == nil {
		return
	}
	for line := range strings.Lines(string(out)) {
		if !unused.MatchString(line) {
			t.Error(line)
		}
	}
}
