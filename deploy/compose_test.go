//go:build deploy

package deploy

import (
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestCompose checks compose.yaml against the Compose specification, and the settings of its
// services with the broker and the janitor.
func TestCompose(t *testing.T) {
	values := map[string]string{
		"SWITCHBOARD_PEER_SECRET": strings.Repeat("p", 32), "SWITCHBOARD_AUTH_KEYS": "plain:" + strings.Repeat("k", 20),
		"SWITCHBOARD_AUTH_HS256_SECRET": strings.Repeat("t", 32),
	}
	variable := regexp.MustCompile(`\$\{(\w+):([-?])([^}]*)\}`)
	text := variable.ReplaceAllStringFunc(readFile(t, "compose.yaml"), func(v string) string {
		parts := variable.FindStringSubmatch(v)
		if parts[2] == "-" {
			return parts[3]
		}
		if values[parts[1]] == "" {
			t.Errorf("%s is required, and unknown to this test", parts[1])
		}
		return values[parts[1]]
	})
	path := writeFile(t, filepath.Join(t.TempDir(), "compose.yaml"), text)
	var model struct {
		Services map[string]struct {
			Environment map[string]string
		}
	}
	if err := yaml.Unmarshal([]byte(runTool(t, "compose", path)), &model); err != nil {
		t.Fatal(err)
	}
	if len(model.Services) != 6 {
		t.Errorf("there are %d services", len(model.Services))
	}
	help := map[string]string{
		"broker":  output(t, filepath.Join(bin, "broker"), "--help"),
		"janitor": output(t, filepath.Join(bin, "janitor"), "--help"),
	}
	for name, service := range model.Services {
		kind, _, _ := strings.Cut(name, "-")
		if help[kind] == "" {
			continue
		}
		var environ []string
		for key, value := range service.Environment {
			if environ = append(environ, key+"="+value); !strings.Contains(help[kind], "env "+key+"\n") {
				t.Errorf("%s: %s belongs to no setting", name, key)
			}
		}
		if kind == "broker" {
			cmd := exec.CommandContext(t.Context(), filepath.Join(bin, "broker"), "check", "--user=alice", "--channel=news")
			cmd.Env = environ
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", name, err, out)
			}
		}
	}
	if !strings.Contains(readFile(t, "haproxy.cfg"), "broker-3:8080") {
		t.Error("HAProxy does not know the services")
	}
}
