//go:build long

package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"switchboard/bench/progress"
)

// The ignored goroutines are those of gnet's worker pool, which lasts as long as the process.
func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).purgeStaleWorkers"),
		goleak.IgnoreTopFunction("github.com/panjf2000/ants/v2.(*poolCommon).ticktock"))
}

// TestRun measures small cases in a hundredth of the time, first without those of brokers in this
// process.
func TestRun(t *testing.T) {
	log, err := os.CreateTemp(t.TempDir(), "progress")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	o := options{
		clients: []int{3}, brokers: []int{2}, pushes: 100, out: t.TempDir(), time: 5 * time.Minute, pace: 0.01,
		only: []string{onlyEnds, onlyFailover, onlyHints, onlyPushes},
	}
	var out bytes.Buffer
	if err := o.run(t.Context(), progress.New(log), &out); err != nil {
		t.Fatal(err)
	}
	o.only = []string{onlyIdle} // the other results stay
	out.Reset()
	if err := o.run(t.Context(), progress.New(log), &out); err != nil {
		t.Fatal(err)
	}
	if written, err := os.ReadFile(filepath.Join(o.out, "REPORT.md")); err != nil || !bytes.Equal(written, out.Bytes()) {
		t.Errorf("the file differs from what was printed: %v", err)
	}
	r, err := readReport(o.out)
	if err != nil || len(r.Results) != 2 || len(r.Failovers) != 4 || len(r.Hints) != 1 || len(r.Pushes) != 3 || len(r.Idle) != 2 {
		t.Fatalf("report.json: %+v, %v", r, err)
	}
	for i, c := range r.Results {
		if c.Clients != 3 || c.Watching != (i == 1) || c.Start == 0 || c.End == 0 || c.LastCheck == 0 {
			t.Errorf("case %d is %+v", i, c)
		}
	}
	if h := r.Hints[0]; h.Pushes != 2 || h.LateMost == 0 || h.LateMost < h.LateP50 {
		t.Errorf("with dropped hints: %+v", h)
	}
	for _, p := range r.Pushes {
		if p.BeforeP99 == 0 || p.P99 == 0 {
			t.Errorf("pushes: %+v", p)
		}
	}
	for _, want := range []string{
		"| clients | quiet", "| 3 | ", "| 3, watching | ", "| cluster, 3 | ", "| cluster, the broker's own lists, 3 | ", "| cluster, two masters, 3 | ", "| sentinel, 3 | ",
		"| " + hungMaster + " | 3 | ", "| 2, with the whole kit | ",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &out)
		}
	}
}

// TestRestarts restarts brokers of a small fleet with fast beats.
func TestRestarts(t *testing.T) {
	log, err := os.CreateTemp(t.TempDir(), "progress")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	o := options{fleetBrokers: 4, fleetClients: 40, restartCount: 2, pace: 0.2}
	r, err := o.restarts(t.Context(), progress.New(log), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	// A restart costs each client some 40 commands. They are not those of the other brokers.
	if r.Restarts != 2 || r.Clients != 40 || r.PerClient < 10 || r.PerBroker > 10*r.PerClient/3 {
		t.Errorf("%+v", r)
	}
}

// TestIdleBrokers counts the commands of a few brokers with fast beats. More brokers must not make
// the beat of each dearer.
func TestIdleBrokers(t *testing.T) {
	o := options{pace: 0.1}
	for _, n := range []int{1, 12} {
		r, err := o.idle(t.Context(), t.TempDir(), n, false)
		if err != nil {
			t.Fatal(err)
		}
		if r.Brokers != n || r.PerBeat == 0 || r.PerBeat > 11 {
			t.Errorf("%+v, want up to 11 for a beat", r)
		}
	}
}

// TestIdleKit: of a few brokers with the kit, one makes the rounds. The others cost little more
// than their beats: without leases, each would add some 20 commands a second.
func TestIdleKit(t *testing.T) {
	const n = 12
	o := options{pace: 0.1}
	r, err := o.idle(t.Context(), t.TempDir(), n, true)
	if err != nil {
		t.Fatal(err)
	}
	if most := 10*n/o.scaled(beatTime).Seconds() + 80; !r.Kit || r.PerSecond == 0 || r.PerSecond > most {
		t.Errorf("%+v, want up to %.0f a second", r, most)
	}
}

func TestWrongArguments(t *testing.T) {
	for args, want := range map[string]string{
		"-n 1":        "above 1",
		"--brokers 0": "positive",
		"--only all":  "unknown",
		"--fleet 0":   "positive",
		"word":        "unexpected argument",
	} {
		if _, err := parseOptions(strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
}
