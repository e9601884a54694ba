package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"switchboard/internal/redistest"
)

type tailed struct {
	Type, Channel, Client string
	ID, After             int64
	Data                  any
	Set                   map[string]any
}

// line returns the next line of a command with --json.
func (l *lines) line(t *testing.T) (m tailed) {
	t.Helper()
	text := l.next(t)
	if err := json.Unmarshal([]byte(text), &m); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return m
}

func TestTail(t *testing.T) {
	b := startBroker(t, nil)
	environ := []string{"SWITCHBOARD_URL=" + b.url}
	for n := range 5 {
		b.ok(t, "push", "news", fmt.Sprint(n))
	}
	if out := b.ok(t, "tail", "news", "--last=2", "--count=2"); !strings.HasSuffix(out, "\t4\n") || strings.Count(out, "\n") != 2 {
		t.Errorf("the last two: %q", out)
	}
	if out := b.ok(t, "tail", "news", "--last=9", "--count=5"); !strings.HasSuffix(out, "\t4\n") || strings.Count(out, "\n") != 5 || strings.Contains(out, "gap") {
		t.Errorf("the last nine of five: %q", out)
	}
	l := follow(t, environ, "tail", "news", "room:7", "--json", "--last=1")
	if m := l.line(t); m.Type != "message" || m.Channel != "news" || m.Data != 4.0 {
		t.Errorf("%+v", m)
	}
	b.ok(t, "push", "room:7", "--set", "turn=amy")
	if m := l.line(t); m.Channel != "room:7" || m.Set["turn"] != "amy" || m.Data != nil {
		t.Errorf("%+v", m)
	}
	if code := l.interrupt(t); code != exitOK {
		t.Errorf("interrupted: %d, %s", code, l.errors())
	}
	if r := b.cli(t, "tail", "a b"); r.Code != exitUsage {
		t.Errorf("a bad name: %+v", r)
	}
	all := follow(t, environ, "tail", "--all", "--after=0", "--json")
	b.ok(t, "push", "--all", "noon")
	if m := all.line(t); m.Channel != "$all" || m.Data != "noon" {
		t.Errorf("%+v", m)
	}
}

// TestTailContinues: with --position, a second tail begins after the last line of the first one.
func TestTailContinues(t *testing.T) {
	b := startBroker(t, nil)
	position := filepath.Join(t.TempDir(), "position")
	for n := range 4 {
		b.ok(t, "push", "news", fmt.Sprint(n))
	}
	first := b.ok(t, "tail", "news", "--after=0", "--count=2", "--position", position)
	second := b.ok(t, "tail", "news", "--after=0", "--count=2", "--position", position)
	if !strings.HasSuffix(first, "\t1\n") || !strings.HasSuffix(second, "\t3\n") || !strings.Contains(second, "\t2\n") {
		t.Errorf("%q, then %q", first, second)
	}
}

// TestTailSurvivesBroker: tail goes on at the second address when the first broker is killed. No
// message is lost or repeated.
func TestTailSurvivesBroker(t *testing.T) {
	server := redistest.Start(t)
	environ := []string{"SWITCHBOARD_REDIS=" + server.URL(), "SWITCHBOARD_PEER_SECRET=0123456789abcdef0123456789abcdef"}
	one, two := startBroker(t, environ), startBroker(t, environ)
	l := follow(t, []string{"SWITCHBOARD_URL=" + one.url + "," + two.url}, "tail", "news", "--after=0", "--json")
	for n := range 3 {
		one.ok(t, "push", "news", fmt.Sprint(n))
	}
	for n := range 3 {
		if m := l.line(t); m.Data != float64(n) {
			t.Fatalf("%+v, want %d", m, n)
		}
	}
	one.Interrupt(syscall.SIGKILL)
	for n := 3; n < 6; n++ {
		two.ok(t, "push", "news", fmt.Sprint(n))
	}
	for n := 3; n < 6; n++ {
		if m := l.line(t); m.Type != "message" || m.Data != float64(n) {
			t.Fatalf("%+v, want %d", m, n)
		}
	}
}

// TestTailGap: a position that the channel no longer has is reported.
func TestTailGap(t *testing.T) {
	b := startBroker(t, nil)
	b.ok(t, "push", "news", "1")
	l := follow(t, []string{"SWITCHBOARD_URL=" + b.url}, "tail", "news", "--after=5", "--json")
	if gap := l.line(t); gap.Type != "gap" || gap.After != 5 || gap.ID == 0 || gap.Channel != "news" {
		t.Errorf("%+v", gap)
	}
	if m := l.line(t); m.Type != "message" || m.Data != 1.0 {
		t.Errorf("%+v", m)
	}
}
