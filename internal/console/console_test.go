package console

import (
	"bytes"
	"compress/gzip"
	"io"
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

// maxZipped is the number of bytes that a browser loads.
const maxZipped = 80 << 10

func newHandler(t *testing.T) *Handler {
	t.Helper()
	h, err := New()
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// get answers a request with these headers, as name and value in turn.
func get(h http.Handler, method, path string, headers ...string) *http.Response {
	r := httptest.NewRequest(method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

func TestFiles(t *testing.T) {
	h := newHandler(t)
	for path, kind := range map[string]string{
		Path:                       "text/html; charset=utf-8",
		Path + "console.js":        "text/javascript; charset=utf-8",
		Path + "console-style.css": "text/css; charset=utf-8",
		Path + "icon.svg":          "image/svg+xml",
	} {
		resp := get(h, "GET", path)
		body, _ := io.ReadAll(resp.Body)
		if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != kind || len(body) == 0 {
			t.Errorf("%s: status %d, type %q, %d bytes", path, resp.StatusCode, resp.Header.Get("Content-Type"), len(body))
		}
		if head := get(h, "HEAD", path); head.StatusCode != http.StatusOK || head.Header.Get("Content-Length") != resp.Header.Get("Content-Length") {
			t.Errorf("HEAD %s: status %d", path, head.StatusCode)
		}
		zipped := get(h, "GET", path, "Accept-Encoding", "br, gzip;q=0.8")
		r, err := gzip.NewReader(zipped.Body)
		if err != nil {
			t.Fatal(err)
		}
		if unzipped, _ := io.ReadAll(r); !bytes.Equal(unzipped, body) {
			t.Errorf("%s: the gzip body differs", path)
		}
		if zipped.Header.Get("ETag") == resp.Header.Get("ETag") {
			t.Errorf("%s: two bodies have one ETag", path)
		}
		again := get(h, "GET", path, "If-None-Match", resp.Header.Get("ETag"))
		if again.StatusCode != http.StatusNotModified {
			t.Errorf("%s: status %d with its ETag, want 304", path, again.StatusCode)
		}
	}
	for path, want := range map[string]int{
		Path + "nothing": 404, Path + "../console.js": 404, Path + "web/package.json": 404, "/console": 404,
	} {
		if resp := get(h, "GET", path); resp.StatusCode != want {
			t.Errorf("%s: status %d, want %d", path, resp.StatusCode, want)
		}
	}
	if resp := get(h, "POST", Path); resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") == "" {
		t.Errorf("POST: status %d", resp.StatusCode)
	}
}

func TestHeaders(t *testing.T) {
	h := newHandler(t)
	for _, path := range []string{Path, Path + "console.js", Path + "nothing"} {
		header := get(h, "GET", path).Header
		for name, want := range map[string]string{
			"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; " +
				"img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
			"X-Frame-Options":        "DENY",
			"X-Content-Type-Options": "nosniff",
			"Referrer-Policy":        "no-referrer",
		} {
			if got := header.Get(name); got != want {
				t.Errorf("%s: %s is %q, want %q", path, name, got, want)
			}
		}
	}
}

// TestPage checks that the page has no script and no style of its own, and names no other host.
func TestPage(t *testing.T) {
	page, err := dist.ReadFile("dist/index.html")
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{"<style", " style=", "<script>", " onload=", "//"} {
		if strings.Contains(string(page), part) {
			t.Errorf("the page has %q", part)
		}
	}
}

func TestSize(t *testing.T) {
	total := 0
	for path, f := range newHandler(t).files {
		if path != Path { // the same file as index.html
			total += len(f.zip)
		}
	}
	if t.Logf("%d bytes gzipped", total); total > maxZipped {
		t.Errorf("the console has %d bytes gzipped, at most %d are wanted", total, maxZipped)
	}
}

func TestAcceptsGzip(t *testing.T) {
	for value, want := range map[string]bool{
		"": false, "gzip": true, "br, GZIP": true, "gzip;q=0": false, "gzip; q=0.000": false, "gzip;q=0.5": true, "x-gzip": false,
	} {
		if got := acceptsGzip([]string{value}); got != want {
			t.Errorf("%q: %v, want %v", value, got, want)
		}
	}
}

// TestDist checks that dist is what the sources build.
func TestDist(t *testing.T) {
	fresh := t.TempDir()
	run(t, "node", "web/build.mjs", fresh)
	want, got := contents(t, os.DirFS(fresh)), contents(t, os.DirFS("dist"))
	for name, text := range want {
		if got[name] != text {
			t.Errorf("dist/%s is not what the sources build; run: npm run build --prefix internal/console/web", name)
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
	run(t, "node", "web/node_modules/typescript/bin/tsc", "--project", "web")
}

// TestFormat checks the format of the sources.
func TestFormat(t *testing.T) {
	run(t, "node", "web/node_modules/prettier/bin/prettier.cjs", "--check", "web/src", "web/test", "web/build.mjs",
		"--config", "web/package.json", "--ignore-path", "web/.prettierignore")
}

func TestUnits(t *testing.T) { run(t, "node", "--test", "web/test/units.test.mjs") }

// run runs a command, and fails with its output.
func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if _, err := os.Stat(filepath.Join("web", "node_modules")); err != nil {
		t.Fatalf("%v; run `make install-test-tools`", err)
	}
	cmd := exec.CommandContext(t.Context(), name, args...)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
}
