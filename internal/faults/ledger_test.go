package main

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestPageShowsRedRows(t *testing.T) {
	p := newJournalTest()
	p.faultStarts(p.now)
	p.pushed(1)
	s := &bed{journal: p.journal, presence: newPresenceJournal(), scenario: scenario{name: "silence", about: "no messages", redis: single}}
	l := &ledger{Rows: []row{s.row(errors.New("it broke"), time.Second)}}
	l.Rows[0].Logs = filepath.Join(t.TempDir(), "here")
	text := l.markdown()
	for _, want := range []string{"| silence | single | 1 | 0 | 1 |", "| RED |", "it broke", "**silence**: no messages", "{s 1}"} {
		if !strings.Contains(text, want) {
			t.Errorf("the page lacks %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, l.Rows[0].Logs) {
		t.Error("the page contains a local directory")
	}
	if table := l.table(); !strings.Contains(table, "RED") {
		t.Error(table)
	}
}
