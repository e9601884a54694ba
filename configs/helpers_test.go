package configs

import (
	"os"
	"path/filepath"
	"testing"
)

// write makes a file for the length of the test and gives its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// hunter is the secret of these tests: it must turn up nowhere.
const hunter = "hunter2-hunter2-hunter2-hunter2-hunter2"
