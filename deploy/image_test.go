//go:build deploy

package deploy

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"switchboard/internal/redistest"
)

// TestImage builds the image from the static programs, without a registry and without a daemon, and
// runs a broker and a janitor in its file system as its user.
func TestImage(t *testing.T) {
	root := t.TempDir()
	buildah := func(args ...string) string {
		t.Helper()
		store := []string{"--storage-driver=vfs", "--root=" + filepath.Join(root, "storage"), "--runroot=" + filepath.Join(root, "run")}
		return strings.TrimSpace(output(t, "buildah", append(store, args...)...))
	}
	files := filepath.Join(root, "image")
	if err := os.CopyFS(filepath.Join(files, "bin"), os.DirFS(bin)); err != nil {
		t.Fatal(err)
	}
	writeFile(t, filepath.Join(files, "ca-certificates.crt"), readFile(t, "/etc/ssl/certs/ca-certificates.crt"))
	buildah("bud", "--isolation=chroot", "--pull-never", "--target=prebuilt", "-f", "Dockerfile", "-t", "switchboard", files)

	var image struct {
		OCIv1 struct {
			Config struct {
				User       string
				Entrypoint []string
			}
		}
	}
	if err := json.Unmarshal([]byte(buildah("inspect", "--type=image", "switchboard")), &image); err != nil {
		t.Fatal(err)
	}
	if c := image.OCIv1.Config; c.User != "65532:65532" || !slices.Equal(c.Entrypoint, []string{"/usr/bin/broker"}) {
		t.Errorf("the image has the configuration %+v", c)
	}
	t.Logf("%s", buildah("images", "--format", "{{.Name}} {{.Size}}"))

	mounted := buildah("mount", buildah("from", "--pull-never", "switchboard"))
	var list []string
	_ = filepath.WalkDir(mounted, func(path string, d os.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list = append(list, strings.TrimPrefix(path, mounted))
		}
		return err
	})
	for _, want := range []string{"/usr/bin/broker", "/usr/bin/janitor", "/usr/bin/switchboard", "/etc/ssl/certs/ca-certificates.crt"} {
		if !slices.Contains(list, want) {
			t.Errorf("the image has no %s: %v", want, list)
		}
	}
	if len(list) != 4 {
		t.Errorf("the image has more than the programs and the authorities: %v", list)
	}
	if slices.ContainsFunc(list, func(f string) bool { return strings.Contains(f, "sh") && strings.HasPrefix(f, "/bin") }) {
		t.Errorf("the image has a shell: %v", list)
	}

	c := &cluster{t: t, redis: redistest.Start(t)}
	for program, ready := range map[string]string{"broker": "listening", "janitor": "working"} {
		p := c.executeIn(mounted, "/usr/bin/"+program, "--redis="+c.redis.URL(), "--http="+address(t))
		if _, err := p.Logged(within(t), ready, "http"); err != nil {
			t.Fatal(err)
		}
		if err := p.End(within(t), syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
}
