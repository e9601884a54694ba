package switchboard_test

import (
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"switchboard"
)

var update = flag.Bool("update", false, "write the version of the file VERSION to the other places")

// base is the version without "-dev".
var base = strings.TrimSuffix(switchboard.Version, "-dev")

// places are the files that repeat the version, with expressions whose first group is the version.
var places = []struct {
	file, pattern string
	times         int
	version       string
}{
	{"client/js/package.json", `(?m)^  "version": "(.*)"`, 1, switchboard.Version},
	{"client/js/package-lock.json", `"name": "switchboard-client",\s+"version": "(.*)"`, 2, switchboard.Version},
	{"internal/console/web/package.json", `(?m)^  "version": "(.*)"`, 1, switchboard.Version},
	{"internal/console/web/package-lock.json", `"name": "switchboard-console",\s+"version": "(.*)"`, 2, switchboard.Version},
	{"deploy/helm/switchboard/Chart.yaml", `(?m)^version: (.*)$`, 1, switchboard.Version},
	{"deploy/helm/switchboard/Chart.yaml", `(?m)^appVersion: "(.*)"$`, 1, switchboard.Version},
	{"deploy/Dockerfile", `(?m)^LABEL org.opencontainers.image.version="(.*)"$`, 2, switchboard.Version},
	{"broker/api/spec/openapi.yaml", `(?m)^info:\n(?:  .*\n)*?  version: "(.*)"$`, 1, switchboard.Version},
	{"broker/api/spec/asyncapi.yaml", `(?m)^info:\n(?:  .*\n)*?  version: "(.*)"$`, 1, switchboard.Version},
}

// TestPlaces: every file that repeats the version has that of the file VERSION.
func TestPlaces(t *testing.T) {
	for _, p := range places {
		text, err := os.ReadFile(p.file)
		if err != nil {
			t.Fatal(err)
		}
		found := regexp.MustCompile(p.pattern).FindAllSubmatchIndex(text, -1)
		if len(found) != p.times {
			t.Errorf("%s: %d matches of %s, want %d", p.file, len(found), p.pattern, p.times)
		}
		for i := len(found) - 1; i >= 0; i-- {
			from, to := found[i][2], found[i][3]
			if got := string(text[from:to]); got != p.version && !*update {
				t.Errorf("%s has the version %s, want %s: run go test . -update", p.file, got, p.version)
			}
			text = append(text[:from:from], append([]byte(p.version), text[to:]...)...)
		}
		if *update {
			if err := os.WriteFile(p.file, text, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestForm: the version has the form of semver.org, with "-dev" or nothing after the numbers.
func TestForm(t *testing.T) {
	if !regexp.MustCompile(`^\d+\.\d+\.\d+(-dev)?$`).MatchString(switchboard.Version) {
		t.Errorf("VERSION holds %q", switchboard.Version)
	}
}

// TestNotes: the changelog and the page on upgrades have one section for each version, the newest
// first. The first one of the changelog is that of the file VERSION, with a date after the release.
func TestNotes(t *testing.T) {
	changelog := sections(t, "CHANGELOG.md")
	want := base + ", not yet released"
	if base == switchboard.Version {
		want = base + `, \d{4}-\d\d-\d\d`
	}
	if len(changelog) == 0 || !regexp.MustCompile(`^`+want+`$`).MatchString(changelog[0]) {
		t.Errorf("the first section of CHANGELOG.md is %q, want %s", changelog, want)
	}
	for _, title := range changelog {
		if !regexp.MustCompile(`^\d+\.\d+\.\d+, (\d{4}-\d\d-\d\d|not yet released)$`).MatchString(title) {
			t.Errorf("CHANGELOG.md: the section %q belongs to no version", title)
		}
	}
	upgrade := sections(t, "docs/upgrade.md")
	if len(upgrade) < 2 || upgrade[0] != "A rolling upgrade" {
		t.Fatalf("docs/upgrade.md has the sections %q", upgrade)
	}
	for _, title := range upgrade[1:] {
		if !regexp.MustCompile(`^To \d+\.\d+\.\d+$`).MatchString(title) {
			t.Errorf("docs/upgrade.md: the section %q is not of a version, like %q; put it below that of %s, one level deeper", title, "To "+base, base)
		}
	}
}

// sections returns the titles of the second level.
func sections(t *testing.T, file string) (titles []string) {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			titles = append(titles, strings.TrimSpace(title))
		}
	}
	return titles
}
