package snippets

import (
	"context"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"switchboard"
	"switchboard/configs"
	"switchboard/internal/testbed"
)

// patience is how long a test waits for what must happen.
const patience = 20 * time.Second

// programs is the directory of the programs.
var programs string

func TestMain(m *testing.M) {
	flag.StringVar(&programs, "bin", "", "directory of the programs; empty: the test builds them")
	flag.Parse()
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if programs != "" {
		return m.Run()
	}
	return testbed.Main(&programs, m.Run, "switchboard/cmd/broker", "switchboard/cmd/janitor", "switchboard/cmd/switchboard")
}

// TestVersions checks that all programs print the version of the file VERSION.
func TestVersions(t *testing.T) {
	for _, name := range []string{"broker", "janitor", "switchboard"} {
		out, err := exec.CommandContext(t.Context(), filepath.Join(programs, name), "--version").Output()
		program, version, ok := strings.Cut(strings.TrimSpace(string(out)), " ")
		if err != nil || !ok || program != name || !strings.HasPrefix(version, switchboard.Version) {
			t.Errorf("%s --version: %q, %v", name, out, err)
		}
	}
}

// TestPages runs the shell blocks of each page, and checks their answers and the JSON and YAML on
// the way.
func TestPages(t *testing.T) {
	for _, page := range pages(t) {
		t.Run(page, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
			defer cancel()
			runPage(ctx, t, page)
		})
	}
}

// startsBroker matches a line that starts a broker on the first port.
var startsBroker = regexp.MustCompile(`(?m)^(make run|(bin/)?switchboard serve|(bin/)?broker( --config| --insecure|$))`)

func runPage(ctx context.Context, t *testing.T, page string) {
	var sh *shell
	blocks := blocksOf(t, page)
	if shells := shellsOf(blocks); shells != "" {
		sh = newShell(ctx, t, page)
		if !startsBroker.MatchString(shells) {
			if _, failed := sh.step("make run\n"); failed != "" {
				t.Fatal(failed)
			}
		}
	}
	for i, b := range blocks {
		if skipped(b) {
			continue
		}
		if sh != nil && b.file() != "" {
			save(t, sh, b)
		}
		switch {
		case b.language == "sh":
			sh.refused = i+1 < len(blocks) && blocks[i+1].info == "answer" && strings.Contains(blocks[i+1].code, `"error"`)
			sh.run(b)
			if b.info == "hidden" {
				sh.own = append(sh.own, sh.files()...)
			}
		case b.language == "json" && sh != nil && b.info == "answer":
			sh.answer(b)
		case b.language == "json" && sh != nil && b.info == "received":
			sh.received(ctx, b)
		case b.language == "yaml":
			checkYAML(t, b)
		}
	}
	if sh != nil {
		sh.checkLeft()
	}
}

// shellsOf returns the code of all shell blocks that are run.
func shellsOf(blocks []block) (code string) {
	for _, b := range blocks {
		if b.language == "sh" && !skipped(b) {
			code += b.code
		}
	}
	return code
}

// save writes the file that a block holds.
func save(t *testing.T, sh *shell, b block) {
	path := filepath.Join(sh.dir, b.file())
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(sh.mapped(b.code)), 0o600); err != nil {
		t.Fatal(err)
	}
}

// secretFile matches a setting that names a file.
var secretFile = regexp.MustCompile(`(_file|\bfile): *([\w./-]+)`)

// checkYAML loads a configuration. Files with secrets that it names get one.
func checkYAML(t *testing.T, b block) {
	dir := t.TempDir()
	t.Helper()
	code := secretFile.ReplaceAllStringFunc(b.code, func(setting string) string {
		m := secretFile.FindStringSubmatch(setting)
		path := filepath.Join(dir, filepath.Base(m[2]))
		if err := os.WriteFile(path, []byte(strings.Repeat("5f", 32)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		if strings.Contains(m[2], "keys") {
			_ = os.WriteFile(path, []byte("sha256:"+strings.Repeat("5f", 32)+" admin backend\n"), 0o600)
		}
		return m[1] + ": " + path
	})
	path := filepath.Join(dir, "broker.yaml")
	if err := os.WriteFile(path, []byte(code), 0o600); err != nil {
		t.Fatal(err)
	}
	var err error
	if strings.HasPrefix(b.file(), "janitor") {
		_, err = configs.LoadJanitor([]string{"--config", path, "--redis", "redis://127.0.0.1:6379"}, nil)
	} else {
		_, err = configs.LoadBroker([]string{"--config", path}, nil)
	}
	if err != nil {
		t.Errorf("%s:%d: %v", b.page, b.line, err)
	}
}
