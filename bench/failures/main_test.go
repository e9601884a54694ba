package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"switchboard/bench/progress"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestRun measures two small cases in a hundredth of the time.
func TestRun(t *testing.T) {
	log, err := os.CreateTemp(t.TempDir(), "progress")
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	var out bytes.Buffer
	o := options{clients: []int{3}, pushes: 100, out: t.TempDir(), time: 5 * time.Minute, pace: 0.01}
	if err := o.run(t.Context(), progress.New(log), &out); err != nil {
		t.Fatal(err)
	}
	if written, err := os.ReadFile(filepath.Join(o.out, "REPORT.md")); err != nil || !bytes.Equal(written, out.Bytes()) {
		t.Errorf("the file differs from what was printed: %v", err)
	}
	var r report
	data, err := os.ReadFile(filepath.Join(o.out, "report.json"))
	if err != nil || json.Unmarshal(data, &r) != nil || len(r.Results) != 2 {
		t.Fatalf("report.json: %s, %v", data, err)
	}
	for i, c := range r.Results {
		if c.Clients != 3 || c.Watching != (i == 1) || c.Start == 0 || c.End == 0 {
			t.Errorf("case %d is %+v", i, c)
		}
	}
	for _, want := range []string{"| clients | quiet", "| 3 | ", "| 3, watching | "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &out)
		}
	}
}

func TestWrongArguments(t *testing.T) {
	for args, want := range map[string]string{
		"-n 1": "above 1",
		"word": "unexpected argument",
	} {
		if _, err := parseOptions(strings.Fields(args), io.Discard); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", args, err, want)
		}
	}
}
