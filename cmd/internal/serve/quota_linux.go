package serve

import (
	"os"
	"path"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// machineReader returns a function that reads the current state of the machine.
func machineReader() func() machine {
	var groups cgroups
	if proc, err := procfs.NewDefaultFS(); err == nil {
		groups = cpuCgroups(proc)
	}
	return func() machine { return machine{cpus: allowedCPUs(), quota: groups.quota()} }
}

// allowedCPUs returns the number of processors in the affinity mask.
func allowedCPUs() int {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(os.Getpid(), &set); err != nil || set.Count() == 0 {
		return runtime.NumCPU() // the number at the start
	}
	return set.Count()
}

// cgroups are the directories of the CPU cgroup of this process and of its mounted parents. As in
// the Go runtime, they are determined once: a later move of the process to another cgroup has no
// effect.
type cgroups struct {
	v1   bool
	dirs []string
}

// cpuCgroups finds the cgroups. As in the Go runtime, a version 1 hierarchy with the cpu controller
// has precedence over version 2.
func cpuCgroups(proc procfs.FS) cgroups {
	self, err := proc.Self()
	if err != nil {
		return cgroups{}
	}
	all, err := self.Cgroups()
	if err != nil {
		return cgroups{}
	}
	mounts, err := proc.GetMounts()
	if err != nil {
		return cgroups{}
	}
	for _, v1 := range []bool{true, false} {
		i := slices.IndexFunc(all, func(g procfs.Cgroup) bool {
			return v1 && slices.Contains(g.Controllers, "cpu") || !v1 && g.HierarchyID == 0
		})
		if i < 0 {
			continue
		}
		for _, m := range mounts {
			_, cpu := m.SuperOptions["cpu"]
			if v1 && m.FSType == "cgroup" && cpu || !v1 && m.FSType == "cgroup2" {
				if dirs := directories(m, all[i].Path); dirs != nil {
					return cgroups{v1, dirs}
				}
			}
		}
	}
	return cgroups{}
}

// directories returns the directory of a cgroup and its parents up to the mount point, nil if the
// cgroup is not in that mount.
func directories(m *procfs.MountInfo, group string) (dirs []string) {
	root := strings.TrimSuffix(m.Root, "/")
	if group != root && !strings.HasPrefix(group, root+"/") {
		return nil
	}
	for rest := path.Clean("/" + group[len(root):]); ; rest = path.Dir(rest) {
		dirs = append(dirs, path.Join(m.MountPoint, rest))
		if rest == "/" {
			return dirs
		}
	}
}

// quota returns the smallest quota of the cgroups, in processors; 0 for none.
func (g cgroups) quota() (least float64) {
	for _, dir := range g.dirs {
		if q := g.quotaOf(dir); q > 0 && (least == 0 || q < least) {
			least = q
		}
	}
	return least
}

// quotaOf returns the quota of one cgroup. The files have the quota and the period in µs; a quota
// of -1 or max means none.
func (g cgroups) quotaOf(dir string) float64 {
	text := read(dir + "/cpu.max")
	if g.v1 {
		text = read(dir+"/cpu.cfs_quota_us") + " " + read(dir+"/cpu.cfs_period_us")
	}
	quota, period, _ := strings.Cut(text, " ")
	q, err := strconv.ParseFloat(quota, 64)
	if err != nil || q < 0 {
		return 0
	}
	if p, err := strconv.ParseFloat(period, 64); err == nil && p > 0 {
		return q / p
	}
	return 0
}

// read returns the content of a file, "" if it cannot be read: the root of a hierarchy has no such
// files.
func read(file string) string {
	text, _ := os.ReadFile(file)
	return strings.TrimSpace(string(text))
}
