package js_test

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
)

// declaration matches the files that are built with the package and not committed.
var declaration = regexp.MustCompile(`\.d\.c?ts$`)

// TestDist builds the client and compares the result with the committed files.
func TestDist(t *testing.T) {
	t.Parallel()
	readSources(t)
	fresh := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "node", "build.mjs", fresh).CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s\nif packages are missing: make install-test-tools", err, out)
	}
	want, got := readFiles(t, fresh), readFiles(t, "dist")
	compareSurface(t, want)
	for name, text := range want {
		if !declaration.MatchString(name) && !bytes.Equal(got[name], text) {
			t.Errorf("dist/%s differs from its source: run `make js`", name)
		}
	}
	for name := range got {
		if !declaration.MatchString(name) && want[name] == nil {
			t.Errorf("dist/%s has no source: run `make js`", name)
		}
	}
}

// readFiles returns the files of a directory, by their path in it.
func readFiles(t *testing.T, dir string) map[string][]byte {
	t.Helper()
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err == nil {
			files[name], err = os.ReadFile(path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}
