package configs

import (
	"os"
	"os/exec"
	"regexp"
	"slices"
	"testing"
)

// TestAlerts checks the alerting rules with Prometheus's own tool: their syntax, and each alert
// just above and just below its bound.
func TestAlerts(t *testing.T) {
	for _, args := range [][]string{{"check", "rules", "alerts.yml"}, {"test", "rules", "testdata/alerts_test.yml"}} {
		if out, err := exec.CommandContext(t.Context(), "promtool", args...).CombinedOutput(); err != nil {
			t.Errorf("promtool %v: %v\n%s", args, err, out)
		}
	}
}

// TestEveryAlertIsTested compares the alerts with the tests and with the page for operators.
func TestEveryAlertIsTested(t *testing.T) {
	names := func(path, pattern string) (list []string) {
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(pattern).FindAllSubmatch(text, -1) {
			list = append(list, string(m[1]))
		}
		slices.Sort(list)
		return slices.Compact(list)
	}
	alerts := names("alerts.yml", `- alert: (\w+)`)
	if tested := names("testdata/alerts_test.yml", `alertname: (\w+)`); !slices.Equal(alerts, tested) {
		t.Errorf("the rules have %v, the tests %v", alerts, tested)
	}
	if described := names("../docs/operations.md", "(?m)^\\| `([A-Z]\\w+)` \\|"); !slices.Equal(alerts, described) {
		t.Errorf("the rules have %v, docs/operations.md %v", alerts, described)
	}
}
