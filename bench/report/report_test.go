package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden files anew")

// sample returns a small run in which a peer is better in one scenario, one is absent, and a target
// is missed.
func sample() Run {
	r := Run{
		Commit: "0123456789ab", Machine: "2 × a processor, 24 GiB, Linux 6", Go: "go1.26", Redis: "7.0.15",
		Date: "2026-11-21T11:30:00Z", Took: 24*time.Minute + 3*time.Second, Rounds: 3, Stolen: []float64{0.31, 22.64, 4},
		Invalid: []string{
			"mosquitto: not measured: it is not installed",
			"herd, centrifuge, round 2: 3 deliveries were lost, repeated, changed or out of order: x | y\nz",
		},
		Versions: map[string]string{"nchan": "1.3.6", "switchboard tcp": "0123456789ab"},
		Notes:    map[string]string{"nchan": "one worker, messages in memory", "switchboard tcp": "as it comes, Redis without AOF"},
	}
	add := func(scenario, system, metric string, x float64, values ...float64) {
		r.Results = append(r.Results, Result{scenario, system, metric, x, values})
	}
	add("fanout-10k", "floor", "cpu_us_per_delivery", 0, 5, 5.2, 5.1)
	add("fanout-10k", "switchboard tcp", "cpu_us_per_delivery", 0, 5.5, 6.24, 5.1)
	add("fanout-10k", "nchan", "cpu_us_per_delivery", 0, 6.5, 6.9, 6.7)
	add("fanout-10k", "switchboard tcp", "redis_us_per_delivery", 0, 0.01, 0.011, 0.009)
	add("idle", "switchboard tcp", "rss_bytes_per_conn", 0, 1190, 1210, 1180)
	add("idle", "switchboard http", "rss_bytes_per_conn", 0, 12_000, 12_100, 12_010)
	add("idle", "switchboard sse", "rss_bytes_per_conn", 0, 13_000, 13_100, 12_950)
	add("idle", "nchan", "rss_bytes_per_conn", 0, 10_400, 10_500, 10_390)
	add("idle", "centrifuge", "rss_bytes_per_conn", 0, 47_400, 47_500, 47_300)
	add("single-10k", "switchboard tcp", "cpu_us_per_push", 0, 44, 45, 60)
	add("single-10k", "switchboard memory", "cpu_us_per_push", 0, 29, 30, 31)
	add("single-10k", "nchan", "cpu_us_per_push", 0, 27, 28) // one round failed
	add("single-10k", "centrifuge", "cpu_us_per_push", 0, 80, 90, 100)
	add("single-10k", "centrifuge memory", "cpu_us_per_push", 0, 25, 35, 45)
	for i, p := range []float64{50, 90, 99, 99.9, 99.99} {
		v := float64(int(100) << i)
		add("latency", "switchboard tcp", "latency_us", p, v, v*1.1, v*0.9)
		add("latency", "centrifuge", "latency_us", p, v*2, v*2, v*4)
	}
	for i, system := range []string{"switchboard tcp", "switchboard memory", "nchan", "centrifuge memory"} {
		for _, p := range []float64{50, 99} {
			v := p * float64(5-i)
			add("latency-2k", system, "latency_us", p, v, v+1, v+2)
		}
		add("latency-2k", system, "cpu_us_per_push", 0, 100-10*float64(i))
		add("latency-2k", system, "rate_per_s", 0, 2_000)
	}
	for i, x := range []float64{1, 2, 4, 8} {
		v := 100 + 8*float64(i)
		add("instances", "switchboard tcp", "cpu_us_per_push", x, v, v, v+10)
	}
	add("instances", "switchboard tcp", "pushes_per_s", 1, 1000, 1100, 900)
	add("new <work>", "switchboard tcp", "things", 0, 1, 2, 3)
	return r
}

// TestGolden compares all files with testdata. Run it with -update to accept a change, and look at
// the plots.
func TestGolden(t *testing.T) {
	bench := t.TempDir()
	dir := filepath.Join(bench, "state")
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "plots"), 0o755), writeMethod(bench)); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "plots", "old.svg"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	million := "# A million\n\nIn short: 20 connections, done.\n\nMore.\n"
	if err := os.WriteFile(filepath.Join(dir, "MILLION.md"), []byte(million), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir, sample()); err != nil {
		t.Fatal(err)
	}
	var table bytes.Buffer
	quick := sample()
	quick.Quick = true
	Table(&table, quick)
	if err := os.WriteFile(filepath.Join(dir, "table.txt"), table.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := errors.Join(os.RemoveAll("testdata"), os.CopyFS("testdata", os.DirFS(dir))); err != nil {
			t.Fatal(err)
		}
	}
	want, got := files(t, "testdata"), files(t, dir)
	for name, text := range got {
		if want[name] != text {
			t.Errorf("%s differs from testdata; it is\n%s", name, text)
		}
	}
	if len(want) != len(got) {
		t.Errorf("%d files, want %d", len(got), len(want))
	}
}

// TestMethodPath looks for the method from the folder bench, from folders in it, and from another
// folder.
func TestMethodPath(t *testing.T) {
	bench := t.TempDir()
	if err := writeMethod(bench); err != nil {
		t.Fatal(err)
	}
	for dir, want := range map[string]string{
		bench: "suite/doc.go", filepath.Join(bench, "state"): "../suite/doc.go", filepath.Join(bench, "a", "b"): "../../suite/doc.go",
		filepath.Dir(bench): "",
	} {
		if got := methodPath(dir); got != want {
			t.Errorf("from %s: %q, want %q", dir, got, want)
		}
	}
}

// writeMethod writes methodFile.
func writeMethod(bench string) error {
	file := filepath.Join(bench, methodFile)
	return errors.Join(os.Mkdir(filepath.Dir(file), 0o755), os.WriteFile(file, nil, 0o644))
}

func files(t *testing.T, dir string) map[string]string {
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestPlotsAreXML checks that special characters in names are escaped.
func TestPlotsAreXML(t *testing.T) {
	r := sample()
	r.Results = append(r.Results, Result{"idle", `"<b>&`, "rss_bytes_per_conn", 0, []float64{1}})
	for _, s := range r.scenarios() {
		for _, p := range r.plots(s) {
			for d := xml.NewDecoder(bytes.NewReader(p.svg)); ; {
				token, err := d.Token()
				if errors.Is(err, io.EOF) {
					break
				}
				if e, ok := token.(xml.StartElement); err != nil || ok && e.Name.Local == "b" {
					t.Fatalf("%s: %v, %v", p.file, token, err)
				}
			}
		}
	}
}

func TestNothingMeasured(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir, Run{}); err != nil {
		t.Fatal(err)
	}
	text := files(t, dir)["REPORT.md"]
	if want := fmt.Sprintf("it says nothing about %d other targets.", len(Targets)); !strings.Contains(text, want) {
		t.Errorf("the report does not say %q:\n%s", want, text)
	}
	if !strings.Contains(text, "Nowhere in this run.") {
		t.Errorf("the report lists better peers:\n%s", text)
	}
}

func TestEvaluate(t *testing.T) {
	r := sample()
	for _, tc := range []struct {
		target Target
		met    bool
		median float64
	}{
		{Target{Scenario: "idle", System: "switchboard tcp", Metric: "rss_bytes_per_conn", Limit: 1190}, true, 1190},
		{Target{Scenario: "idle", System: "switchboard tcp", Metric: "rss_bytes_per_conn", Limit: 1189}, false, 1190},
		{Target{Scenario: "instances", System: "switchboard tcp", Metric: "pushes_per_s", X: 1, Limit: 999, AtLeast: true}, true, 1000},
		{Target{Scenario: "instances", System: "switchboard tcp", Metric: "pushes_per_s", X: 1, Limit: 1001, AtLeast: true}, false, 1000},
		// The ratios of the rounds are 0.5, 0.55 and 0.225. The ratio of the means would not be 0.5.
		{Target{Scenario: "latency", System: "switchboard tcp", Metric: "latency_us", X: 50, RatioTo: "centrifuge", Limit: 0.5}, true, 0.5},
		{Target{Scenario: "fanout-10k", System: "switchboard tcp", Metric: "cpu_us_per_delivery", RatioTo: "floor", Limit: 1.15}, true, 1.1},
		{Target{Scenario: "instances", System: "switchboard tcp", Metric: "cpu_us_per_push", X: 8, RatioToX: 1, Limit: 1.2}, false, 1.24},
		// The numbers of rounds differ, so this is the ratio of the medians.
		{Target{Scenario: "single-10k", System: "nchan", Metric: "cpu_us_per_push", RatioTo: "switchboard tcp", Limit: 1}, true, 27.5 / 45},
	} {
		v := r.evaluateTarget(tc.target)
		if !v.measured || v.met != tc.met || v.figure.median-tc.median > 1e-9 || tc.median-v.figure.median > 1e-9 {
			t.Errorf("%+v: got %+v", tc, v)
		}
	}
	for system, want := range map[string]string{
		"mosquitto": "mosquitto: not measured: it is not installed", "socket.io": "socket.io was not in this run",
	} {
		v := r.evaluateTarget(Target{Scenario: "idle", System: "switchboard tcp", Metric: "rss_bytes_per_conn", RatioTo: system, Limit: 1})
		if v.measured || v.reason != want {
			t.Errorf("%s: got %+v", system, v)
		}
	}
}

// TestReference checks that a peer in memory is compared with our system in memory, and a peer over
// Redis with our system over Redis.
func TestReference(t *testing.T) {
	r := sample()
	for system, want := range map[string]string{
		"nchan": "switchboard memory", "mosquitto qos 0": "switchboard memory", "centrifuge memory": "switchboard memory",
		"centrifuge": "switchboard tcp", "socket.io": "switchboard tcp", "floor": "switchboard tcp",
		"switchboard tcp queue": "switchboard tcp", "switchboard memory queue": "switchboard memory",
	} {
		if got := r.reference("single-10k", system); got != want {
			t.Errorf("%s is compared with %q, want %q", system, got, want)
		}
	}
	if got := r.reference("idle", "nchan"); got != "switchboard tcp" { // the scenario has no system of ours in memory
		t.Errorf("nchan is compared with %q", got)
	}
	sameStore, otherStore := r.peerWins()
	for _, tc := range []struct {
		texts []string
		want  string
	}{
		{sameStore, "CPU per push: switchboard memory has 30.0 µs; nchan has 27.5 µs."},
		{otherStore, "CPU per push: switchboard tcp has 45.0 µs; centrifuge memory has 35.0 µs and nchan has 27.5 µs."},
	} {
		found := func(text string) bool { return strings.HasSuffix(text, tc.want) }
		if !slices.ContainsFunc(tc.texts, found) {
			t.Errorf("%q is missing: %q", tc.want, tc.texts)
		}
	}
}

// TestMissingReason checks that an error of a variant of a system is not reported for the system
// itself.
func TestMissingReason(t *testing.T) {
	r := Run{Invalid: []string{"herd, switchboard memory queue, round 1: x", "herd, switchboard memory, round 2: y", "beat, centrifuge at 5, round 1: z"}}
	for _, tc := range []struct{ scenario, system, want string }{
		{"herd", "switchboard memory", r.Invalid[1]},
		{"beat", "centrifuge", r.Invalid[2]},
		{"herd", "switchboard", "the scenario was not run"},
	} {
		if got := r.missingReason(tc.scenario, tc.system); got != tc.want {
			t.Errorf("%s, %s: got %q, want %q", tc.scenario, tc.system, got, tc.want)
		}
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 0.00004: "4e-05", 0.0123: "0.012", 0.4567: "0.46", 1.149: "1.15", 12.34: "12.3", 99.96: "100", 999.4: "999",
		999.6: "1,000", 2_345_678: "2,345,678", -1500: "-1,500",
	} {
		if got := formatNumber(v); got != want {
			t.Errorf("%v is %s, want %s", v, got, want)
		}
	}
}

func TestScale(t *testing.T) {
	for _, tc := range []struct {
		least, most float64
		log         bool
		low, high   float64
		ticks       int
	}{
		{3, 9, false, 0, 10, 6},
		{1, 31, true, 1, 50, 6},
		{0.6, 4000, true, 0.5, 5000, 13},
		{0.3, 40_000, true, 0.2, 50_000, 5},
		{0, 0, false, 0, 1, 2},
		{5.1, 6.9, false, 0, 8, 5},
	} {
		s := newScale(tc.least, tc.most, 30, 100, 200)
		if s.log != tc.log || s.low-tc.low > 1e-9 || s.high-tc.high > 1e-9 || len(s.ticks) != tc.ticks {
			t.Errorf("%v to %v: got %+v", tc.least, tc.most, s)
		}
		if a, b := s.pixel(s.low), s.pixel(s.high); a != 100 || b < 199.999 || b > 200.001 {
			t.Errorf("%v to %v: the ends are at %v and %v", tc.least, tc.most, a, b)
		}
	}
}

func TestThousands(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 999: "999", 1_000: "1,000", 1_000_000: "1,000,000", 12_034_005: "12,034,005"} {
		if got := Thousands(n); got != want {
			t.Errorf("%d is %s", n, got)
		}
	}
}
