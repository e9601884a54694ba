package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the section of docs/comparison.md, REPORT.md and the plot again")

// heading is that of the section of docs/comparison.md, which is its last one.
const heading = "## What a failure costs\n"

// TestPage compares the report and the section of docs/comparison.md with report.json.
func TestPage(t *testing.T) {
	r, err := readReport(".")
	if err != nil {
		t.Fatal(err)
	}
	const page = "../../docs/comparison.md"
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	before, _, ok := strings.Cut(string(text), heading)
	if !ok {
		t.Fatalf("%s has no section %q", page, heading)
	}
	var want bytes.Buffer
	want.WriteString(before + heading)
	r.writeComparison(&want, "../bench/failures/")
	for path, content := range map[string][]byte{page: want.Bytes(), "REPORT.md": r.markdown(), plotFile: r.plot()} {
		if *update {
			if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, content, 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, content) {
			t.Errorf("%s differs from report.json (%v): run go test ./bench/failures -run TestPage -update", path, err)
		}
	}
}

// TestComparison checks the table and the plot of both systems.
func TestComparison(t *testing.T) {
	r := report{
		Results: []result{
			{Clients: 1000, Kill: 10_893, Start: 156, End: 65}, {Clients: 4000, Kill: 44_007, Start: 153, End: 65},
			{Clients: 4000, Watching: true, Kill: 99_999},
		},
		Centrifuge: []result{{Clients: 1000, Kill: 12, Start: 15, End: 9}},
	}
	var b bytes.Buffer
	r.writeComparison(&b, "../bench/failures/")
	for _, want := range []string{"| switchboard, 4,000 | 0 | 44,007 | 153 | 65 |\n", "| centrifuge, 1,000 | 0 | 12 | 15 | 9 |\n", "(../bench/failures/plots/failures.svg)"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is missing in:\n%s", want, &b)
		}
	}
	svg := string(r.plot())
	for _, want := range []string{"switchboard kill", "centrifuge end", "4,000", "(logarithmic)"} {
		if !strings.Contains(svg, want) {
			t.Errorf("%q is missing in the plot:\n%s", want, svg)
		}
	}
	if strings.Contains(b.String(), "99,999") {
		t.Error("the comparison has clients that watch")
	}
}

// TestMerge checks that a result replaces that of the same case, and that the list stays sorted.
func TestMerge(t *testing.T) {
	var list []result
	for i, n := range []int{4000, 1000, 4000} {
		list = merge(list, []result{{Clients: n, Kill: int64(i)}})
	}
	if len(list) != 2 || list[0].Clients != 1000 || list[1].Kill != 2 {
		t.Errorf("got %+v", list)
	}
}
