//go:build deploy

package deploy

import (
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// object is one object of a YAML document.
type object = map[string]any

const chart = "deploy/helm/switchboard"

// required are the values without which the chart does not render.
var required = []string{
	"--set", "secret.peerSecret=" + strings.Repeat("p", 32), "--set", "secret.apiKeys=plain:" + strings.Repeat("k", 20),
	"--set", "secret.tokenSecret=" + strings.Repeat("t", 32),
}

// render renders the chart and returns its objects by kind and name.
func render(t *testing.T, args ...string) map[string]object {
	t.Helper()
	all := slices.Concat([]string{"template", "sb", chart, "--kube-version=1.30.0"}, required, args)
	list := map[string]object{}
	for d := yaml.NewDecoder(strings.NewReader(runTool(t, "helm", all...))); ; {
		var o object
		if err := d.Decode(&o); errors.Is(err, io.EOF) {
			return list
		} else if err != nil {
			t.Fatal(err)
		}
		if o == nil {
			continue
		}
		name := o["kind"].(string) + "/" + o["metadata"].(object)["name"].(string)
		if _, twice := list[name]; twice || o["apiVersion"] == nil {
			t.Errorf("%s is there twice, or has no version", name)
		}
		list[name] = o
	}
}

// at returns the value at a path of keys and indexes.
func at(t *testing.T, v any, path ...any) any {
	t.Helper()
	for _, step := range path {
		switch step := step.(type) {
		case string:
			o, _ := v.(object)
			v = o[step]
		case int:
			list, _ := v.([]any)
			if step >= len(list) {
				return nil
			}
			v = list[step]
		}
	}
	return v
}

// TestChart checks the rendered chart.
func TestChart(t *testing.T) {
	runTool(t, "helm", append([]string{"lint", "--strict", chart}, required...)...)
	plain := render(t)
	var kinds []string
	for name := range plain {
		kinds = append(kinds, name)
	}
	slices.Sort(kinds)
	want := []string{
		"ConfigMap/sb-switchboard", "Deployment/sb-switchboard-janitor", "NetworkPolicy/sb-switchboard",
		"NetworkPolicy/sb-switchboard-janitor", "PodDisruptionBudget/sb-switchboard", "Secret/sb-switchboard",
		"Service/sb-switchboard", "Service/sb-switchboard-janitor", "Service/sb-switchboard-peers", "StatefulSet/sb-switchboard",
	}
	if !slices.Equal(kinds, want) {
		t.Errorf("the chart renders %v, want %v", kinds, want)
	}
	full := render(t, "--set", "autoscaling.enabled=true", "--set", "autoscaling.connections=40000",
		"--set", "serviceMonitor.enabled=true", "--set", "ingress.enabled=true", "--set", "brokers.drainTime=100")
	for _, name := range []string{"HorizontalPodAutoscaler/sb-switchboard", "ServiceMonitor/sb-switchboard", "Ingress/sb-switchboard"} {
		if full[name] == nil {
			t.Errorf("%s is missing", name)
		}
	}
	if at(t, full["StatefulSet/sb-switchboard"], "spec", "replicas") != nil {
		t.Error("replicas and the autoscaler contradict each other")
	}

	pod := at(t, plain["StatefulSet/sb-switchboard"], "spec", "template", "spec")
	for _, fact := range []struct {
		path []any
		want any
	}{
		{[]any{"terminationGracePeriodSeconds"}, 45},
		{[]any{"securityContext", "runAsNonRoot"}, true},
		{[]any{"automountServiceAccountToken"}, false},
		{[]any{"containers", 0, "securityContext", "readOnlyRootFilesystem"}, true},
		{[]any{"containers", 0, "readinessProbe", "httpGet", "path"}, "/readyz"},
		{[]any{"containers", 0, "livenessProbe", "httpGet", "path"}, "/healthz"},
		{[]any{"containers", 0, "lifecycle", "preStop", "sleep", "seconds"}, 5},
	} {
		if got := at(t, pod, fact.path...); got != fact.want {
			t.Errorf("%v is %v, want %v", fact.path, got, fact.want)
		}
	}
	if got := at(t, full["StatefulSet/sb-switchboard"], "spec", "template", "spec", "terminationGracePeriodSeconds"); got != 125 {
		t.Errorf("with a drain time of 100 s, a pod has %v s to end", got)
	}
	selector := at(t, plain["Service/sb-switchboard"], "spec", "selector").(object)
	labels := at(t, plain["StatefulSet/sb-switchboard"], "spec", "template", "metadata", "labels").(object)
	for key, value := range selector {
		if labels[key] != value {
			t.Errorf("the Service selects %s=%v, and the pods have %v", key, value, labels[key])
		}
	}
	checkConfigMap(t, plain)
}

// checkConfigMap reads the rendered settings with the broker itself.
func checkConfigMap(t *testing.T, objects map[string]object) {
	t.Helper()
	dir := t.TempDir()
	for key, value := range at(t, objects["Secret/sb-switchboard"], "stringData").(object) {
		writeFile(t, filepath.Join(dir, key), value.(string))
	}
	text := at(t, objects["ConfigMap/sb-switchboard"], "data", "broker.yaml").(string)
	config := writeFile(t, filepath.Join(dir, "broker.yaml"), replaceAll(t, text, "/run/secrets/switchboard", dir))
	out := output(t, filepath.Join(bin, "broker"), "check", "--config", config, "--user", "alice", "--channel", "news")
	if !strings.Contains(out, "alice") {
		t.Error(out)
	}
}

// TestChartRefuses: the schema of the values and the required values.
func TestChartRefuses(t *testing.T) {
	for value, want := range map[string]string{
		"brokers.replicas=0":        "replicas",
		"service.type=Nothing":      "type",
		"nothing=1":                 "nothing",
		"secret.peerSecret=short":   "peerSecret",
		"config.http=1":             "config",
		"secret.tokenSecret=":       "secret.tokenSecret",
		"redis.url=http://redis:80": "url",
	} {
		args := slices.Concat([]string{"template", "sb", chart, "--kube-version=1.30.0"}, required, []string{"--set", value})
		if out, err := tool(t, "helm", args...).CombinedOutput(); err == nil || !strings.Contains(string(out), want) {
			t.Errorf("%s: %v %s", value, err, out)
		}
	}
}
