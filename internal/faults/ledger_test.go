package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPageShowsWhatIsRed(t *testing.T) {
	p := newPage()
	p.inject(p.now)
	p.pushed(1)
	s := &stage{book: p.book, roster: newAttendance(), scenario: scenario{name: "silence", about: "nothing is said", redis: single}}
	l := &ledger{Rows: []row{s.row(errors.New("it broke"), time.Second)}}
	l.Rows[0].Logs = filepath.Join(t.TempDir(), "here")
	text := l.markdown()
	for _, want := range []string{"| silence | single | 1 | 0 | 1 |", "| RED |", "it broke", "**silence**: nothing is said", "{s 1}"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, l.Rows[0].Logs) {
		t.Error("the page names a directory of this machine")
	}
	if table := l.table(); !strings.Contains(table, "RED") {
		t.Error(table)
	}
}
