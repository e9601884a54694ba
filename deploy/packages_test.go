//go:build deploy

package deploy

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"switchboard"
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

// TestRunTool: the lines of go when it downloads a tool are not a part of the tool's output.
func TestRunTool(t *testing.T) {
	dir := t.TempDir()
	fake := writeFile(t, filepath.Join(dir, "go"), "#!/bin/sh\necho 'go: downloading example.com/tool v1.0.0' >&2\necho services: {}\n")
	if err := os.Chmod(fake, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	if out := runTool(t, "compose", "compose.yaml"); out != "services: {}\n" {
		t.Errorf("the output is %q", out)
	}
}

// TestRelease builds all artifacts of a version, and checks that each one is there, with its
// checksum and the version in its name. Then it uses the package for Debian.
func TestRelease(t *testing.T) {
	output(t, "../.ci/release")
	version := switchboard.Version
	prefix := "switchboard_" + version + "_"
	want := []string{
		"switchboard-" + version + ".tgz", "switchboard-client-" + version + ".tgz", "console_" + version + ".cdx.json",
		prefix + "image_linux_amd64.tar", prefix + "image_linux_arm64.tar", prefix + "windows_amd64.zip", prefix + "windows_arm64.zip",
	}
	for _, platform := range []string{"linux_amd64", "linux_arm64", "darwin_amd64", "darwin_arm64", "freebsd_amd64", "freebsd_arm64"} {
		want = append(want, prefix+platform+".tar.gz")
		if strings.HasPrefix(platform, "linux") {
			want = append(want, prefix+platform+".deb", prefix+platform+".rpm")
		}
	}
	for _, program := range []string{"broker", "janitor", "switchboard"} {
		want = append(want, program+"_"+version+".cdx.json")
		checkParts(t, program, version)
	}
	var listed []string
	for line := range strings.Lines(readFile(t, "../dist/checksums.txt")) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		listed = append(listed, name)
		if got := sha256.Sum256([]byte(readFile(t, filepath.Join("../dist", name)))); hex.EncodeToString(got[:]) != sum {
			t.Errorf("%s has another checksum", name)
		}
	}
	slices.Sort(want)
	slices.Sort(listed)
	if !slices.Equal(listed, want) {
		t.Fatalf("checksums.txt has\n%s\nwant\n%s", strings.Join(listed, "\n"), strings.Join(want, "\n"))
	}
	useDebianPackage(t, "../dist/"+prefix+"linux_amd64.deb")
}

// checkParts checks that the list of the parts of a program has each module that is linked into it.
func checkParts(t *testing.T, program, version string) {
	t.Helper()
	var list struct {
		BOMFormat string
		Metadata  struct {
			Component struct{ Name, Version string }
		}
		Components []struct {
			Name, Version string
			Evidence      struct{ Licenses []any }
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, "../dist/"+program+"_"+version+".cdx.json")), &list); err != nil {
		t.Fatal(err)
	}
	if list.BOMFormat != "CycloneDX" || list.Metadata.Component.Version != version {
		t.Errorf("%s: the list is of %+v", program, list)
	}
	listed := map[string]string{}
	for _, c := range list.Components {
		listed[c.Name] = c.Version
		// The license of btree has no title, so the tool does not know it.
		if c.Name != "std" && c.Name != "github.com/tidwall/btree" && len(c.Evidence.Licenses) == 0 {
			t.Errorf("%s: no license of %s", program, c.Name)
		}
	}
	info, err := buildinfo.ReadFile(filepath.Join(bin, program))
	if err != nil {
		t.Fatal(err)
	}
	for _, module := range info.Deps {
		if listed[module.Path] != module.Version {
			t.Errorf("%s: %s %s is linked, the list has %q", program, module.Path, module.Version, listed[module.Path])
		}
	}
	if len(listed) != len(info.Deps)+1 || listed["std"] == "" {
		t.Errorf("%s: %d parts, %d modules are linked", program, len(listed), len(info.Deps))
	}
}

// useDebianPackage installs a package into an empty file system, and runs what it has installed,
// with the configuration that it has installed.
func useDebianPackage(t *testing.T, deb string) {
	t.Logf("%s", output(t, "dpkg", "--contents", deb))
	root := emptySystem(t)
	install := []string{"--root=" + root, "--force-script-chrootless", "--force-depends", "--install", deb}
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
