//go:build long

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"switchboard/bench/progress"
	"switchboard/bench/report"
	"switchboard/bench/system"
)

// program is the path of the broker, built once for all tests.
var program string

func TestMain(m *testing.M) { os.Exit(testMain(m)) }

func testMain(m *testing.M) int {
	if len(os.Args) > 1 && os.Args[1] == floorCommand { // started by system.Floor
		return command(os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	}
	dir, err := os.MkdirTemp("", "suite-test-")
	if err == nil {
		defer os.RemoveAll(dir)
		program, err = system.BuildBroker(context.Background(), dir)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// smallSuite returns a suite of one round over one scenario with a small load.
func smallSuite(t *testing.T, id string, change func(*size)) *suite {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), "progress")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = log.Close() })
	all := slices.DeleteFunc(slices.Clone(scenarios), func(sc scenario) bool { return sc.id != id })
	if len(all) != 1 {
		t.Fatalf("%d scenarios have the id %s", len(all), id)
	}
	sc := all[0]
	sc.size.connections, sc.size.channels = min(sc.size.connections, 20), min(sc.size.channels, 20)
	sc.size.publishers, sc.size.pushes, sc.size.batch = min(sc.size.publishers, 3), min(sc.size.pushes, 6), min(sc.size.batch, 10)
	if sc.rooms {
		sc.size.channels = min(sc.size.channels, 5)
	}
	if sc.size.time = 200 * time.Millisecond; sc.size.pushes > 0 {
		sc.size.time = time.Minute // enough for all pushes
	}
	if change != nil {
		change(&sc.size)
	}
	sc.xs = sc.xs[:min(len(sc.xs), 2)]
	if id == "holds" {
		sc.xs = []int{1, 3}
	}
	if id == "beat" {
		sc.xs = []int{10, 20}
	}
	own := contenders(program, filepath.Dir(program))
	sc.systems = slices.DeleteFunc(slices.Clone(sc.systems), func(name string) bool {
		return !strings.HasPrefix(name, "floor") && !strings.HasPrefix(name, "switchboard")
	})
	return &suite{scenarios: []scenario{sc}, contenders: own, rounds: 1, progress: progress.New(log)}
}

// TestScenarios runs each scenario with a small load and our own systems. It checks that results
// exist, not their values.
func TestScenarios(t *testing.T) {
	for id, metrics := range map[string][]string{
		"fanout-10k":    {"cpu_us_per_delivery", "deliveries_per_s"},
		"fanout-1k-16p": {"cpu_us_per_delivery", "redis_us_per_delivery", "deliveries_per_s"},
		"single-10k":    {"cpu_us_per_push", "redis_us_per_push", "pushes_per_s"},
		"batch-100":     {"cpu_us_per_push", "redis_us_per_push", "pushes_per_s"},
		"latency":       {"latency_us", "rate_per_s", "cpu_us_per_push"},
		"latency-2k":    {"latency_us", "rate_per_s", "cpu_us_per_push", "redis_us_per_push"},
		"herd":          {"cpu_us_per_conn", "redis_us_per_conn", "redis_commands_per_conn", "seconds"},
		"herd-webhooks": {"cpu_us_per_conn", "redis_us_per_conn", "redis_commands_per_conn", "seconds"},
		"instances":     {"cpu_us_per_push", "redis_us_per_push"},
		"beat":          {"cpu_ms_per_s", "redis_ms_per_s"},
		"idle-cpu":      {"cpu_ms_per_min", "redis_commands_per_conn_min"},

		"state-update":     {"cpu_us_per_push", "redis_us_per_push", "pushes_per_s"},
		"state-page":       {"cpu_us_per_page", "redis_us_per_page", "pages_per_s"},
		"state-fanout":     {"cpu_us_per_delivery", "redis_us_per_delivery"},
		"state-fanout-16p": {"cpu_us_per_delivery", "redis_us_per_delivery"},
		"cursors":          {"cpu_us_per_value", "redis_us_per_value", "latency_p50_us", "latency_p99_us"},
		"state-memory":     {"store_bytes_per_field", "state_bytes_per_field"},
		"state-idle":       {"rss_bytes_per_conn", "redis_bytes_per_conn"},
		"load":             {"cpu_us_per_delivery", "cpu_us_per_push", "redis_us_per_push", "deliveries_per_read"},
		"load-loop":        {"cpu_us_per_delivery", "cpu_us_per_push", "redis_us_per_push", "deliveries_per_read"},

		"rooms-4":     {"cpu_us_per_join", "joins_per_s", "rss_bytes_per_room", "redis_bytes_per_room", "idle_us_per_room", "cpu_us_per_delivery", "redis_us_per_delivery", "changes_per_s", "cores"},
		"rooms-50":    {"cpu_us_per_join", "joins_per_s", "cpu_us_per_delivery", "redis_us_per_delivery", "changes_per_s", "cores"},
		"rooms-empty": {"rss_bytes_per_room", "redis_bytes_per_room"},
		"holds":       {"cpu_us_per_hold", "holds_per_s"},
	} {
		t.Run(id, func(t *testing.T) {
			t.Parallel()
			s := smallSuite(t, id, nil)
			s.rate = 200
			if err := s.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := s.report()
			for _, why := range r.Invalid {
				t.Error(why)
			}
			if len(r.Stolen) != s.rounds {
				t.Errorf("%d steal values for %d rounds", len(r.Stolen), s.rounds)
			}
			sc := s.scenarios[0]
			for _, name := range sc.systems {
				for _, metric := range metrics {
					if want := hasMetric(s.contenders[name], metric); hasResult(r, id, name, metric) != want {
						t.Errorf("%s of %s exists: %v, want %v", metric, name, !want, want)
					}
				}
				if sc.idleID != "" && !s.contenders[name].isFloor() && !hasResult(r, sc.idleID, name, "rss_bytes_per_conn") {
					t.Errorf("no memory result of %s", name)
				}
			}
		})
	}
}

// hasMetric reports whether a contender has a metric. Metrics of Redis and of its keys need a
// Redis.
func hasMetric(c contender, metric string) bool {
	return c.redis || !strings.HasPrefix(metric, "redis_") && metric != "state_bytes_per_field"
}

func hasResult(r report.Run, scenario, name, metric string) bool {
	return slices.ContainsFunc(r.Results, func(res report.Result) bool {
		return res.Scenario == scenario && res.System == name && res.Metric == metric && len(res.Values) == 1
	})
}

// TestFaultyServer loses, repeats, changes or swaps a message as a faulty server would, and checks
// that the measurement does not count and that the report contains the fault.
func TestFaultyServer(t *testing.T) {
	for _, tc := range []struct {
		scenario, fault, want string
	}{
		{"single-10k", "lose", "no event"},
		{"single-10k", "repeat", "out of order"},
		{"single-10k", "change", "a message that was not pushed"},
		{"fanout-1k-16p", "repeat", "out of order"},
		{"fanout-1k-16p", "swap", "of the same publisher"},
		{"fanout-10k", "repeat", "out of order"},
		{"instances", "repeat", "out of order"},
		{"herd", "lose", "no event"},
		{"state-fanout", "repeat", "out of order"},
	} {
		t.Run(tc.scenario+" "+tc.fault, func(t *testing.T) {
			t.Parallel()
			s := smallSuite(t, tc.scenario, nil)
			if tc.fault == "lose" {
				s.stall = 500 * time.Millisecond // the message never arrives
			}
			c := s.contenders["switchboard tcp"]
			c.system = faulty{c.system, tc.fault}
			s.contenders = map[string]contender{c.name: c}
			s.scenarios[0].xs = s.scenarios[0].xs[:min(1, len(s.scenarios[0].xs))]
			if err := s.run(t.Context()); err != nil {
				t.Fatal(err)
			}
			r := s.report()
			if len(r.Results) > 0 || len(r.Invalid) != 1 || !strings.Contains(r.Invalid[0], tc.want) || !strings.Contains(r.Invalid[0], tc.scenario) {
				t.Errorf("results %v, want the fault %q: %q", r.Results, tc.want, r.Invalid)
			}
		})
	}
}

// faulty is a system whose publishers apply a fault to one message each.
type faulty struct {
	system.System
	fault string
}

func (f faulty) Start(ctx context.Context, s system.Setup) (system.Running, error) {
	r, err := f.System.Start(ctx, s)
	return faultyRunning{r, f.fault}, err
}

type faultyRunning struct {
	system.Running
	fault string
}

func (r faultyRunning) Publisher() (system.Publisher, error) {
	p, err := r.Running.Publisher()
	return &faultyPublisher{Publisher: p, fault: r.fault}, err
}

type faultyPublisher struct {
	system.Publisher
	fault string
	calls int
	held  []byte
}

// Publish applies the fault to the fifth message.
func (p *faultyPublisher) Publish(ctx context.Context, channel string, data []byte) error {
	p.calls++
	switch {
	case p.calls == 5 && p.fault == "lose":
		return nil
	case p.calls == 5 && p.fault == "change":
		data = bytes.Replace(data, []byte("a"), []byte("b"), 1)
	case p.calls == 5 && p.fault == "repeat":
		if err := p.Publisher.Publish(ctx, channel, data); err != nil {
			return err
		}
	case p.calls == 5 && p.fault == "swap":
		p.held = bytes.Clone(data)
		return nil
	case p.calls == 6 && p.fault == "swap":
		if err := p.Publisher.Publish(ctx, channel, data); err != nil {
			return err
		}
		data = p.held
	}
	return p.Publisher.Publish(ctx, channel, data)
}

// unavailableSystem is a system that is not installed.
type unavailableSystem struct{ starts int }

func (u *unavailableSystem) Start(context.Context, system.Setup) (system.Running, error) {
	u.starts++
	return nil, fmt.Errorf("no such program")
}

// runSuiteProgram runs the program and returns its results.
func runSuiteProgram(t *testing.T, args ...string) (r report.Run, code int) {
	t.Helper()
	log, err := os.CreateTemp(t.TempDir(), "stderr")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var out bytes.Buffer
	code = command(append(args, "--json", "--rounds", "1", "--only", "load"), nil, &out, log)
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		stderr, _ := os.ReadFile(log.Name())
		t.Fatalf("%v: %s\n%s", err, &out, stderr)
	}
	return r, code
}

// TestLoad measures a running broker with sizes of the command line.
func TestLoad(t *testing.T) {
	running, err := (&system.Switchboard{Program: program}).Start(t.Context(), system.Setup{Dir: t.TempDir(), Transport: "tcp"})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := running.Stop(); err != nil {
			t.Error(err)
		}
	}()
	url := "http://" + running.(system.Monitored).HTTP()
	for _, args := range []string{"-n 50 --channels 3 -p 8", "-n 20 --size 1000 --transport ws"} {
		r, code := runSuiteProgram(t, append(strings.Fields(args), "-m", "20", "--quick",
			"--url-http", url, "--url-tcp", running.Addr(), "--pid", fmt.Sprint(running.PIDs()[0]))...)
		if code != 0 || len(r.Invalid) > 0 {
			t.Fatalf("%s: exit code %d, %q", args, code, r.Invalid)
		}
		for _, id := range []string{"load", "load-loop"} {
			if !hasResult(r, id, "switchboard external", "cpu_us_per_delivery") {
				t.Errorf("%s: no result of %s: %v", args, id, r.Results)
			}
		}
	}
}

// TestNoBroker checks that a run without a working broker fails and gives the reason.
func TestNoBroker(t *testing.T) {
	r, code := runSuiteProgram(t, "-n", "1", "--broker", "/bin/false", "--system", "memory$")
	if code != 1 || len(r.Invalid) != 1 || !strings.Contains(r.Invalid[0], "switchboard memory: not measured") {
		t.Errorf("exit code %d: %q", code, r.Invalid)
	}
}

// TestUnavailable checks that a system that does not start is tried once and reported once.
func TestUnavailable(t *testing.T) {
	s := smallSuite(t, "herd", nil)
	u := &unavailableSystem{}
	s.contenders = map[string]contender{"centrifuge": {name: "centrifuge", system: u}}
	s.scenarios[0].systems, s.rounds = []string{"centrifuge"}, 3
	if err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	r := s.report()
	if len(r.Invalid) != 1 || !strings.Contains(r.Invalid[0], "centrifuge: not measured: no such program") || u.starts != 1 {
		t.Errorf("%d starts, %q", u.starts, r.Invalid)
	}
}

// TestWriteResult checks when a report is written.
func TestWriteResult(t *testing.T) {
	r := report.Run{Results: []report.Result{{Scenario: "herd", System: "switchboard tcp", Metric: "cpu_us_per_conn", Values: []float64{60}}}}
	dir := t.TempDir()
	for _, tc := range []struct {
		opts    options
		written bool
	}{{options{out: dir, json: true}, false}, {options{quick: true}, false}, {options{out: dir}, true}} {
		var out bytes.Buffer
		if err := tc.opts.writeResult(r, &out); err != nil || !strings.Contains(out.String(), "switchboard tcp") {
			t.Errorf("%+v: %v, %s", tc.opts, err, &out)
		}
		raw, err := os.ReadFile(filepath.Join(dir, "report.json"))
		if err == nil {
			err = json.Unmarshal(raw, new(report.Run))
		}
		if (err == nil) != tc.written {
			t.Errorf("%+v: report: %v", tc.opts, err)
		}
	}
}

func TestCheckOwnSystems(t *testing.T) {
	for text, want := range map[string]bool{
		"herd, centrifuge, round 1: one was lost":      false,
		"nchan: not measured: no such program":         false,
		"herd, switchboard tcp, round 1: one was lost": true,
	} {
		if err := checkOwnSystems([]string{text}); (err != nil) != want {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func TestOptions(t *testing.T) {
	for _, tc := range []struct{ args, want string }{
		{"--only (", "--only"},
		{"--only nothing-like-this", "matches no scenario"},
		{"--rounds -1", "is negative"},
		{"--system (", "--system"},
		{"--connections -1", "--connections: -1 is not between"},
		{"--connections 100000000", "--connections: 100000000 is not between"},
		{"--channels 11 -n 10", "--channels: 11 is not between 1 and 10"},
		{"--transport udp", `"udp" is none of`},
		{"--size 5", "--size: 5 is not between"},
		{"--stall 0s", "--stall: 0s"},
		{"--pid 1", "a running broker needs"},
		{"--url-http http://127.0.0.1:1 --pid 1", "a running broker needs"},
		{"--url-http 127.0.0.1:1 --url-tcp 127.0.0.1:2 --pid 1 --broker x", "--broker starts a broker"},
		{"--nonsense", "unknown flag"},
		{"word", "unexpected argument"},
	} {
		if _, err := parseOptions(strings.Fields(tc.args), io.Discard); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s: got %v, want %s", tc.args, err, tc.want)
		}
	}
	for args, want := range map[string]options{
		"":                       {rounds: 4, out: "bench"},
		"--quick":                {rounds: 2, quick: true},
		"--quick --out x":        {rounds: 2, quick: true, out: "x"},
		"--rounds 1 --json":      {rounds: 1, out: "bench", json: true},
		"--only herd --rounds 9": {rounds: 9, out: "bench"},
		"--only load -n 50":      {rounds: 4, load: size{connections: 50}},
	} {
		o, err := parseOptions(strings.Fields(args), io.Discard)
		want.stall, want.transport = 10*time.Second, "tcp"
		if o.only = nil; err != nil || o != want {
			t.Errorf("%s: got %+v, %v", args, o, err)
		}
	}
	o, err := parseOptions(strings.Fields("--url-http http://127.0.0.1:1/ --transport http --pid 1"), io.Discard)
	if err != nil || o.external.HTTP != "127.0.0.1:1" || o.out != "" {
		t.Errorf("%+v, %v", o, err)
	}
	if got := matchingScenarios(regexp.MustCompile("^idle$")); len(got) != 1 || got[0].id != "fanout-10k" {
		t.Errorf("idle belongs to %v", got)
	}
}

// TestProcessorTime checks the share of stolen time between two readings, and that /proc/stat is
// readable.
func TestProcessorTime(t *testing.T) {
	before, after := processorTime{steal: 10, all: 1000}, processorTime{steal: 35, all: 1100}
	if got := after.stealSince(before); got != 25 {
		t.Errorf("%g %%, want 25", got)
	}
	if got := before.stealSince(before); got != 0 {
		t.Errorf("%g %% without elapsed time", got)
	}
	if now := readProcessorTime(); now.all <= 0 || now.steal > now.all {
		t.Errorf("read %+v", now)
	}
}

// TestSteps checks that each system of a scenario is a contender, that a quick run measures only
// its quickSystems, and that the broker in memory is in every scenario that needs only one process.
func TestSteps(t *testing.T) {
	all := contenders(program, filepath.Dir(program))
	for _, sc := range scenarios {
		for _, name := range slices.Concat(sc.systems, sc.quickSystems) {
			if _, ok := all[name]; !ok || !slices.Contains(sc.systems, name) {
				t.Errorf("%s: %s is not a contender", sc.id, name)
			}
		}
		needsRedis := sc.id == "instances" || sc.id == "herd-webhooks" // several brokers, or a broker and a janitor
		own := slices.ContainsFunc([]string{"switchboard memory", "switchboard memory state", "switchboard memory rooms"}, func(name string) bool {
			return slices.Contains(sc.systems, name)
		})
		if own == needsRedis {
			t.Errorf("%s: the broker in memory is measured: %v", sc.id, own)
		}
	}
	sc := scenario{id: "x", systems: []string{"floor", "nchan", "mosquitto"}, quickSystems: []string{"floor", "nchan"}, quick: size{connections: 1}}
	for _, quick := range []bool{false, true} {
		s := suite{scenarios: []scenario{sc}, contenders: all, quick: quick}
		var names []string
		for _, st := range s.steps(1) {
			names = append(names, st.contender.name)
		}
		want := map[bool]string{false: "nchan mosquitto floor", true: "nchan floor"}[quick]
		if got := strings.Join(names, " "); got != want {
			t.Errorf("quick %v: %s, want %s", quick, got, want)
		}
	}
}

// TestRate checks that a scenario with its own rate does not use that of the run.
func TestRate(t *testing.T) {
	s := smallSuite(t, "latency-2k", func(size *size) { size.rate = 300 })
	s.rate = 200
	if err := s.run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, res := range s.report().Results {
		if res.Metric == "rate_per_s" && !slices.Equal(res.Values, []float64{300}) {
			t.Errorf("%s: %v", res.System, res.Values)
		}
	}
}
