//go:build long

package samples

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// wrongCall must not compile: the API has no such field, and no such call.
const wrongCall = `
// @ts-expect-error: a channel is a text
await api.POST("/v1/push", { body: { channel: 7, data: 1 } });
// @ts-expect-error: no such path
await api.GET("/v1/channel/news");
// @ts-expect-error: an id is a number
const id: string | undefined = push.data.results[0]?.id;
`

// TestGenerated follows docs/guides/generate.md: a client is generated from the description that a
// broker serves, compiled strictly, and pushes.
func TestGenerated(t *testing.T) {
	modules, err := filepath.Abs("node_modules")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/guides/generate.md")
	if err != nil {
		t.Fatal(err)
	}
	m := regexp.MustCompile("```sh\n((?:.*\n)*?)npx openapi-typescript (\\S+) -o (\\S+)\nnpx tsc (.*)\nnode (\\S+)\n```").FindStringSubmatch(string(page))
	if m == nil {
		t.Fatal("the page does not show the commands")
	}
	checkInstalled(t, m[1])
	url := "http://" + startBroker(t).HTTP
	dir := t.TempDir()
	program, err := os.ReadFile(filepath.Join(samples, "push.ts"))
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"push.ts": string(program), "wrong.ts": string(program) + wrongCall, "package.json": `{"type":"module"}`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	run := func(name string, args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), name, args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "SWITCHBOARD_URL="+url, "SWITCHBOARD_KEY="+apiKey)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s %v: %v\n%s", name, args, err, out)
		}
		return string(out)
	}
	tool := func(name string) string { return filepath.Join(modules, ".bin", name) }
	run(tool("openapi-typescript"), strings.Replace(m[2], "http://127.0.0.1:8080", url, 1), "-o", m[3])
	run(tool("tsc"), append(strings.Fields(m[4]), "wrong.ts")...)
	if out := run("node", m[5]); !regexp.MustCompile(`^stored as (\d+)\n(\d+) \{"hello":1\}\n$`).MatchString(out) {
		t.Errorf("the program printed %q", out)
	}
}

// checkInstalled checks that the test has the packages that the page installs.
func checkInstalled(t *testing.T, install string) {
	t.Helper()
	var manifest struct {
		DevDependencies map[string]string
	}
	text, err := os.ReadFile("package.json")
	if err == nil {
		err = json.Unmarshal(text, &manifest)
	}
	if err != nil {
		t.Fatal(err)
	}
	for name, version := range manifest.DevDependencies {
		major, _, _ := strings.Cut(version, ".")
		if !strings.Contains(install, " "+name+"@"+major) {
			t.Errorf("the page does not install %s@%s", name, major)
		}
	}
}
