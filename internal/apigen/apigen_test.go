package apigen_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"switchboard/internal/apigen"
)

// TestCurrent compares the generated files with the document.
func TestCurrent(t *testing.T) {
	files, err := apigen.Files()
	if err != nil {
		t.Fatal(err)
	}
	for path, text := range files {
		compareFile(t, filepath.Join("../..", path), string(text))
	}
	for _, pattern := range []string{"client/*/*_gen.go", "cmd/*/*_gen.go"} {
		found, err := filepath.Glob(filepath.Join("../..", pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range found {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if name, _ := filepath.Rel("../..", path); files[name] == nil && strings.Contains(string(text), "internal/apigen") {
				t.Errorf("%s is no longer generated", name)
			}
		}
	}
}
