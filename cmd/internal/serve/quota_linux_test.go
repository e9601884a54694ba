package serve

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/prometheus/procfs"
)

// TestQuota reads a /proc and cgroup hierarchies that the test creates. MNT in a mountinfo is
// replaced by their folder.
func TestQuota(t *testing.T) {
	const (
		v2 = "30 20 0:26 / MNT/cg rw,nosuid - cgroup2 cgroup2 rw\n"
		v1 = "31 20 0:27 / MNT/cpu rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
	)
	for _, c := range []struct {
		name, cgroup, mounts string
		files                map[string]string
		want                 float64
	}{
		{"none at all", "", "", nil, 0},
		{"no quota", "0::/app\n", v2, map[string]string{"cg/app/cpu.max": "max 100000"}, 0},
		{"version 2", "0::/app\n", v2, map[string]string{"cg/app/cpu.max": "150000 100000"}, 1.5},
		{"of a parent group", "0::/slice/app\n", v2, map[string]string{"cg/slice/app/cpu.max": "max 100000", "cg/slice/cpu.max": "200000 100000"}, 2},
		{"the smaller one", "0::/slice/app\n", v2, map[string]string{"cg/slice/app/cpu.max": "400000 100000", "cg/slice/cpu.max": "200000 100000"}, 2},
		{"a container with a namespace of its own", "0::/\n", v2, map[string]string{"cg/cpu.max": "50000 100000"}, 0.5},
		{"version 1", "4:cpu,cpuacct:/app\n0::/other\n", v2 + v1,
			map[string]string{"cpu/app/cpu.cfs_quota_us": "300000", "cpu/app/cpu.cfs_period_us": "100000", "cg/other/cpu.max": "50000 100000"}, 3},
		{"version 1 without a quota", "4:cpu:/app\n", v1, map[string]string{"cpu/app/cpu.cfs_quota_us": "-1", "cpu/app/cpu.cfs_period_us": "100000"}, 0},
		{"a container in version 1", "4:cpu:/docker/1234\n", strings.Replace(v1, " / ", " /docker/1234 ", 1),
			map[string]string{"cpu/cpu.cfs_quota_us": "100000", "cpu/cpu.cfs_period_us": "50000"}, 2},
		{"another group is mounted", "0::/app\n", strings.Replace(v2, " / ", " /application ", 1), map[string]string{"cg/cpu.max": "50000 100000"}, 0},
		{"not a number", "0::/app\n", v2, map[string]string{"cg/app/cpu.max": "many 100000"}, 0},
		{"no period", "0::/app\n", v2, map[string]string{"cg/app/cpu.max": "100000 0"}, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := t.TempDir()
			put := func(name, text string) {
				t.Helper()
				file := filepath.Join(root, name)
				if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(file, []byte(text+"\n"), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range c.files {
				put(name, text)
			}
			put("proc/7/cgroup", strings.TrimSpace(c.cgroup))
			put("proc/7/mountinfo", strings.TrimSpace(strings.ReplaceAll(c.mounts, "MNT", root)))
			if err := os.Symlink("7", filepath.Join(root, "proc/self")); err != nil {
				t.Fatal(err)
			}
			proc, err := procfs.NewFS(filepath.Join(root, "proc"))
			if err != nil {
				t.Fatal(err)
			}
			groups := cpuCgroups(proc)
			if got := groups.quota(); got != c.want {
				t.Errorf("the quota is %v, want %v; looked at %v", got, c.want, groups.dirs)
			}
			for name := range c.files { // the files may change or disappear
				if strings.HasSuffix(name, "cpu.max") {
					put(name, "700000 100000")
				} else {
					put(name, map[bool]string{true: "700000", false: "100000"}[strings.HasSuffix(name, "quota_us")])
				}
			}
			if got := groups.quota(); len(groups.dirs) > 0 && got != 7 {
				t.Errorf("the quota is %v later, want 7", got)
			}
			if err := os.RemoveAll(root); err != nil {
				t.Fatal(err)
			}
			if got := groups.quota(); got != 0 {
				t.Errorf("the quota is %v without files, want 0", got)
			}
		})
	}
}

// TestMachineReader reads the real machine.
func TestMachineReader(t *testing.T) {
	if m := machineReader()(); m.cpus < 1 || m.quota < 0 || m.share() < 1 {
		t.Errorf("%+v", m)
	}
}
