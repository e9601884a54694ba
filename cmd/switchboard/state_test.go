package main

import (
	"encoding/json"
	"testing"
)

func TestState(t *testing.T) {
	b := startBroker(t, nil)
	b.steps(t, []step{
		{line: "state set form title=Minutes --if title=absent --ttl 1h", want: "form\t"},
		{line: "state set form title=Agenda --if title=absent", code: exitConflict, want: `"Minutes"`},
		{line: "state set form --add n=3 --touch title", // without --ttl, the lease ends
			want: `{"n":3}`},
		{line: "state get form", want: "n\t"},
		{line: "state get form --prefix ti", want: "title\t"},
		{line: "state get form title", want: "\"Minutes\"\n"},
		{line: "state get form none", code: exitNotFound, want: "has no field none"},
		{line: "state set form", code: exitUsage, want: "missing: FIELD=VALUE"},
		{line: "state set form x", code: exitUsage, want: "want FIELD=VALUE"},
		{line: "state set form --del n --disown", want: "form\t"},
	})
	type state struct {
		ID     int64
		Fields map[string][]json.RawMessage
	}
	if s := asJSON[state](t, b, "state", "get", "form"); len(s.Fields) != 1 || string(s.Fields["title"][1]) != `"Minutes"` || len(s.Fields["title"]) != 2 {
		t.Errorf("%+v", s)
	}
}

func TestStateWatch(t *testing.T) {
	b := startBroker(t, nil)
	b.ok(t, "state", "set", "room:7", "turn=amy", "seat/A1=1")
	environ := []string{"SWITCHBOARD_URL=" + b.url}
	all, seats := follow(t, environ, "state", "watch", "room:7"), follow(t, environ, "state", "watch", "room:7", "--prefix=seat/", "--json")
	type line struct {
		Type   string
		Fields map[string]any
		Set    map[string]any
		Del    []string
	}
	next := func() (l line) {
		t.Helper()
		if err := json.Unmarshal([]byte(seats.next(t)), &l); err != nil {
			t.Fatal(err)
		}
		return l
	}
	for _, field := range []string{"seat/A1\tset\t1", "turn\tset\t\"amy\""} {
		if text := all.next(t); text[len(text)-len(field):] != field {
			t.Errorf("%q, want %s", text, field)
		}
	}
	if l := next(); l.Type != "state" || len(l.Fields) != 1 {
		t.Errorf("%+v", l)
	}
	b.ok(t, "state", "set", "room:7", "turn=bob")
	b.ok(t, "state", "set", "room:7", "--del", "seat/A1")
	for _, field := range []string{"turn\tset\t\"bob\"", "seat/A1\tdel\t"} {
		if text := all.next(t); text[len(text)-len(field):] != field {
			t.Errorf("%q, want %s", text, field)
		}
	}
	if l := next(); l.Type != "message" || len(l.Del) != 1 || len(l.Set) != 0 {
		t.Errorf("%+v", l)
	}
	if code := all.interrupt(t); code != exitOK {
		t.Errorf("interrupted: %d", code)
	}
}
