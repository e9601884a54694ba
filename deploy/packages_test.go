//go:build deploy

package deploy

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"switchboard/internal/redistest"
)

// tool returns a command that runs a tool of a module file in tools, in the root of the repository.
func tool(t *testing.T, name string, args ...string) *exec.Cmd {
	t.Helper()
	program := name
	if name == "compose" {
		program = "github.com/compose-spec/compose-go/v2/cmd" // the name of the program is only cmd
	}
	cmd := exec.CommandContext(t.Context(), "go", append([]string{"tool", "-modfile=deploy/tools/" + name + ".mod", program}, args...)...)
	cmd.Dir = ".."
	return cmd
}

// runTool runs a tool to its end and returns what it prints.
func runTool(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := tool(t, name, args...)
	var errors bytes.Buffer // also the lines of go when it downloads the tool
	cmd.Stderr = &errors
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %v: %v\n%s%s", name, args, err, out, &errors)
	}
	return string(out)
}

// TestPackages builds all packages, installs the one for Debian into an empty file system, and runs
// what it has installed, with the configuration that it has installed.
func TestPackages(t *testing.T) {
	runTool(t, "goreleaser", "check")
	runTool(t, "goreleaser", "release", "--snapshot", "--clean", "--parallelism=2")
	for _, pattern := range []string{"linux_amd64.deb", "linux_arm64.deb", "linux_amd64.rpm", "linux_arm64.rpm", "linux_amd64.tar.gz", "linux_arm64.tar.gz", "darwin_amd64.tar.gz", "darwin_arm64.tar.gz"} {
		if list, _ := filepath.Glob("../dist/switchboard_*_" + pattern); len(list) != 1 {
			t.Errorf("the packages for %s: %v", pattern, list)
		}
	}
	debs, _ := filepath.Glob("../dist/switchboard_*_linux_amd64.deb")
	if len(debs) != 1 {
		t.FailNow()
	}
	t.Logf("%s", output(t, "dpkg", "--contents", debs[0]))
	root := emptySystem(t)
	install := []string{"--root=" + root, "--force-script-chrootless", "--force-depends", "--install", debs[0]}
	output(t, "dpkg", install...)

	passwd := readFile(t, filepath.Join(root, "etc/passwd"))
	if !regexp.MustCompile(`(?m)^switchboard:x:\d+:\d+:.*:/nonexistent:/usr/sbin/nologin$`).MatchString(passwd) {
		t.Errorf("the users are\n%s", passwd)
	}
	for path, want := range map[string]os.FileMode{
		"etc/switchboard/broker.yaml": 0o644, "etc/switchboard/switchboard.env": 0o640,
		"etc/switchboard/secrets": 0o750 | os.ModeDir, "usr/lib/switchboard/broker": 0o755,
		"usr/lib/systemd/system/switchboard-broker@.service": 0o644,
	} {
		info, err := os.Stat(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if info.Mode() != want {
			t.Errorf("%s has mode %v, want %v", path, info.Mode(), want)
		}
		if strings.HasPrefix(path, "etc/switchboard/s") && info.Sys().(*syscall.Stat_t).Gid == 0 {
			t.Errorf("%s belongs to the group root", path)
		}
	}
	// A second installation keeps what the operator has changed.
	changed := filepath.Join(root, "etc/switchboard/broker.yaml")
	writeFile(t, changed, readFile(t, changed)+"\nname: changed\n")
	output(t, "dpkg", append([]string{"--force-confold"}, install...)...)
	if text := readFile(t, changed); !strings.Contains(text, "name: changed") {
		t.Error("the second installation has replaced broker.yaml")
	}

	redis := redistest.Start(t)
	c := &cluster{t: t, redis: redis}
	http := address(t)
	broker := c.execute("broker", exec.Command(filepath.Join(root, "usr/lib/switchboard/broker"),
		"--config="+changed, "--redis="+redis.URL(), "--http="+http, "--tcp="+address(t)))
	if _, err := broker.Logged(within(t), "joined", "server"); err != nil {
		t.Fatal(err)
	}
	c.awaitReady(&node{name: "broker", http: http})
	if version := output(t, filepath.Join(root, "usr/lib/switchboard/broker"), "--version"); !strings.HasPrefix(version, "broker ") {
		t.Errorf("the version is %q", version)
	}
	if target, err := os.Readlink(filepath.Join(root, "usr/bin/switchboard")); err != nil || target != "/usr/lib/switchboard/switchboard" {
		t.Errorf("the command line is at %q, %v", target, err)
	}
	output(t, "dpkg", "--root="+root, "--force-script-chrootless", "--purge", "switchboard")
	if _, err := os.Stat(filepath.Join(root, "etc/switchboard")); !os.IsNotExist(err) {
		t.Errorf("after a purge /etc/switchboard is still there: %v", err)
	}
}

// emptySystem returns a file system with no package and only the user root.
func emptySystem(t *testing.T) string {
	root := t.TempDir()
	for path, text := range map[string]string{
		"var/lib/dpkg/status": "", "var/lib/dpkg/available": "", "etc/shadow": "", "etc/gshadow": "",
		"etc/passwd": "root:x:0:0:root:/root:/bin/sh\n", "etc/group": "root:x:0:\n",
		"etc/login.defs": "SYS_UID_MIN 100\nSYS_UID_MAX 999\nSYS_GID_MIN 100\nSYS_GID_MAX 999\n",
	} {
		writeFile(t, filepath.Join(root, path), text)
	}
	for _, dir := range []string{"info", "updates", "triggers"} {
		if err := os.MkdirAll(filepath.Join(root, "var/lib/dpkg", dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

// TestUnits checks the systemd units, with the programs in the place of those of the package. The
// threshold is that of systemd-analyze security: 0 is best, 100 is worst.
func TestUnits(t *testing.T) {
	dir := t.TempDir()
	for file, unit := range map[string]string{
		"switchboard-broker@.service": "switchboard-broker@1.service", "switchboard-janitor.service": "switchboard-janitor.service",
	} {
		text := replaceAll(t, readFile(t, "systemd/"+file), "/usr/lib/switchboard/", bin+"/", "User=switchboard", "User=daemon", "Group=switchboard", "Group=daemon")
		path := writeFile(t, filepath.Join(dir, unit), text)
		if out := output(t, "systemd-analyze", "verify", "--man=no", path); out != "" {
			t.Errorf("%s: %s", file, out)
		}
		report := output(t, "systemd-analyze", "security", "--offline=true", "--threshold=15", path)
		t.Logf("%s", report[strings.LastIndex(strings.TrimSpace(report), "\n")+1:])
	}
}

// TestStopTimeout: the unit, the Compose file and the chart wait for longer than a shutdown may
// take.
func TestStopTimeout(t *testing.T) {
	unit := readFile(t, "systemd/switchboard-broker@.service")
	config := readFile(t, "packaging/broker.yaml")
	if !strings.Contains(unit, "TimeoutStopSec=60s") || !strings.Contains(config, "drain_time: 20s") {
		t.Error("TimeoutStopSec must be more than drain_time and 10 s; change both, and this test")
	}
}
