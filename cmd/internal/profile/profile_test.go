package profile

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func write(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "profiles.yaml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func read(t *testing.T, path string) *File {
	t.Helper()
	f, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// TestFile: changes are in the file, which keeps its comments.
func TestFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "new", "profiles.yaml")
	f := read(t, path)
	if len(f.Names()) != 0 || f.Default != "" {
		t.Errorf("a file that does not exist: %+v", f)
	}
	prod := Profile{URL: "https://a,https://b", KeyFile: "prod.key", CAFile: "/etc/ca.pem", TCP: "a:7070"}
	if err := errors.Join(f.Set("prod", prod), f.Set("dev", Profile{URL: "http://127.0.0.1:8080"}), f.Use("prod")); err != nil {
		t.Fatal(err)
	}
	f = read(t, path)
	if f.Default != "prod" || !slices.Equal(f.Names(), []string{"dev", "prod"}) || f.Profiles["prod"] != prod {
		t.Errorf("%+v", f)
	}
	if got := f.Resolve("prod.key"); got != filepath.Join(filepath.Dir(path), "prod.key") {
		t.Errorf("a relative path: %s", got)
	}
	if got := f.Resolve("/etc/ca.pem"); got != "/etc/ca.pem" {
		t.Errorf("an absolute path: %s", got)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if err := f.Remove("prod"); err != nil || f.Default != "" {
		t.Errorf("%v, %+v", err, f)
	}
	if f = read(t, path); f.Default != "" || !slices.Equal(f.Names(), []string{"dev"}) {
		t.Errorf("after a removal: %+v", f)
	}
	if err := errors.Join(f.Remove("x"), f.Use("x")); !errors.Is(err, ErrUnknown) {
		t.Errorf("an unknown profile: %v", err)
	}
}

func TestComments(t *testing.T) {
	path := write(t, "# of the team\ndefault: dev # mine\nprofiles:\n  # do not break it\n  prod:\n    url: https://a\n  dev: {url: \"http://127.0.0.1:8080\"}\n")
	f := read(t, path)
	if err := errors.Join(f.Use("prod"), f.Set("dev", Profile{URL: "http://127.0.0.1:9"})); err != nil {
		t.Fatal(err)
	}
	text, _ := os.ReadFile(path)
	want := "# of the team\ndefault: prod # mine\nprofiles:\n  # do not break it\n  prod:\n    url: https://a\n  dev:\n    url: http://127.0.0.1:9\n"
	if string(text) != want {
		t.Errorf("%s\nwant %s", text, want)
	}
}

// TestErrors: an error names the file and the reason, and repeats no values.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"profiles: {a: {url: \"http://h\", key: swb_secret}}": "line 1: field key not found",
		"profiles: {a: {key_file: x}}":                        "profile a: url: missing",
		"profiles: {a: {url: \"https://me:swb_secret@h\"}}":   "must not hold a password",
		"profiles: [swb_secret":                               "yaml: ",
	} {
		path := write(t, text)
		_, err := Read(path)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "swb_secret") {
			t.Errorf("%s: %v", text, err)
		}
	}
	f := read(t, write(t, ""))
	for _, name := range []string{"", "a b", "a:b"} {
		if err := f.Set(name, Profile{URL: "http://h"}); err == nil {
			t.Errorf("the name %q", name)
		}
	}
}
