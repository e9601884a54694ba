package main

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/internal/declarations"
)

// TestDist checks that dist is what the sources build.
func TestDist(t *testing.T) {
	fresh := t.TempDir()
	command(t, nil, "node", "web/build.mjs", fresh)
	want, got := contents(t, os.DirFS(fresh)), contents(t, os.DirFS("dist"))
	for name, text := range want {
		if got[name] != text {
			t.Errorf("dist/%s is not what the sources build; run: npm run build --prefix cmd/demo/web", name)
		}
	}
	for name := range got {
		if _, found := want[name]; !found {
			t.Errorf("dist/%s has no source", name)
		}
	}
}

func contents(t *testing.T, root fs.FS) map[string]string {
	t.Helper()
	files := map[string]string{}
	if err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(root, name)
		files[name] = string(text)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return files
}

// TestTypes checks the types of the sources.
func TestTypes(t *testing.T) {
	declarations.Build(t, "../../client/js")
	command(t, nil, "node", "web/node_modules/typescript/bin/tsc", "--project", "web")
}

// TestFormat checks the format of the sources.
func TestFormat(t *testing.T) {
	command(t, nil, "node", "web/node_modules/prettier/bin/prettier.cjs", "--check", "web/src", "web/test", "web/build.mjs",
		"--config", "web/package.json", "--ignore-path", "web/.prettierignore")
}

// TestPage checks the policy of all files, and that the page has no script and no style of its own.
func TestPage(t *testing.T) {
	for path, want := range map[string]int{"/": 200, "/demo.js": 200, "/sdk/index.js": 200, "/sdk/kit/index.js": 200, "/nothing": 404} {
		w := httptest.NewRecorder()
		page().ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
		if w.Code != want || w.Header().Get("Content-Security-Policy") != policy {
			t.Errorf("%s: status %d, want %d; policy %q", path, w.Code, want, w.Header().Get("Content-Security-Policy"))
		}
		if path != "/" {
			continue
		}
		for _, part := range []string{"<style", " style=", "<script>", " onload=", "//"} {
			if strings.Contains(w.Body.String(), part) {
				t.Errorf("the page has %q", part)
			}
		}
	}
}

// TestUnsignedRequest checks that the backend answers the broker only.
func TestUnsignedRequest(t *testing.T) {
	w := httptest.NewRecorder()
	r := httptest.NewRequest(http.MethodPost, "/requests", strings.NewReader(`{"user":"amy","query":{"buy":"1"}}`))
	shop{secrets: []string{"sixteen bytes or more"}}.ServeHTTP(w, r)
	if w.Code != http.StatusForbidden {
		t.Errorf("status %d, want 403", w.Code)
	}
}

// command runs a command, and fails with its output.
func command(t *testing.T, environ []string, name string, args ...string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join("web", "node_modules")); err != nil {
		t.Fatalf("%v; run `make install-test-tools`", err)
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Env = append(os.Environ(), environ...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}
