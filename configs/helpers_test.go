package configs

import (
	"os"
	"path/filepath"
	"testing"
)

// write creates a file for the time of the test and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// testSecret is the secret of these tests: no output may contain it.
const testSecret = "hunter2-hunter2-hunter2-hunter2-hunter2"
