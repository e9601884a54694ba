package keytable

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// TestPage compares docs/keys.md with the table: each key with its type, and no row without a key.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../../docs/keys.md")
	if err != nil {
		t.Fatal(err)
	}
	missing := map[Row]bool{}
	for _, r := range Table {
		missing[r] = true
	}
	sample := strings.NewReplacer("{N}", "{7}", "{evN}", "{ev7}", ":SEASON", ":2026", "<", "", ">", "")
	name := regexp.MustCompile("`([^`]+)`")
	for line := range strings.Lines(string(page)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.Contains(cells[1], "`") {
			continue
		}
		types := strings.Split(strings.TrimSpace(cells[2]), ", ")
		for i, m := range name.FindAllStringSubmatch(cells[1], -1) {
			r, known := rowOf(sample.Replace(m[1]))
			if want := types[min(i, len(types)-1)]; !known || r.Type != want {
				t.Errorf("%s: the table has the type %q, the page %q", m[1], r.Type, want)
			}
			delete(missing, r)
			if season, ok := strings.CutSuffix(m[1], ":SEASON"); ok { // without seasons
				r, _ := rowOf(season)
				delete(missing, r)
			}
		}
	}
	for r := range missing {
		t.Errorf("docs/keys.md has no key for %s", r.Keys)
	}
}
