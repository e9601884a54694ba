package namespace

import (
	"strings"
	"testing"
	"time"

	"switchboard/internal/state"
)

func TestBadFieldRules(t *testing.T) {
	for name, c := range map[string]struct {
		fields []FieldRule
		want   string
	}{
		"no pattern":               {[]FieldRule{{}}, "r: fields.: the pattern is empty"},
		"star inside":              {[]FieldRule{{Pattern: "a/*/b"}}, "fields.a/*/b: a * may stand at the end only"},
		"another placeholder":      {[]FieldRule{{Pattern: "a/{name}"}}, `fields.a/{name}: "{name}" is neither {user} nor {n}`},
		"an open brace":            {[]FieldRule{{Pattern: "a/{"}}, `"{" is neither`},
		"two users":                {[]FieldRule{{Pattern: "{user}/{user}"}}, "{user} may stand only once"},
		"two parts":                {[]FieldRule{{Pattern: "{n}/{n}"}}, "{n} may stand only once"},
		"text after {user}":        {[]FieldRule{{Pattern: "a/{user}b"}}, "only a slash may follow {user}"},
		"a star after {n}":         {[]FieldRule{{Pattern: "a/{n}*"}}, "only a slash may follow {n}"},
		"a bad character":          {[]FieldRule{{Pattern: "a b"}}, "character ' ' at byte 1"},
		"a closing brace":          {[]FieldRule{{Pattern: "a}"}}, "character '}'"},
		"too long":                 {[]FieldRule{{Pattern: strings.Repeat("a", 129)}}, "129 bytes"},
		"a backend field":          {[]FieldRule{{Pattern: "$a/*"}}, "fields that begin with $ always belong to the backend"},
		"twice":                    {[]FieldRule{{Pattern: "a"}, {Pattern: "a"}}, "fields.a: it is given twice"},
		"claim and more":           {[]FieldRule{{Pattern: "a", Write: Claim | Grant}}, "write: claim cannot be combined"},
		"named without a user":     {[]FieldRule{{Pattern: "a", Write: Named}}, "fields.a: write: named needs {user}"},
		"ttl below zero":           {[]FieldRule{{Pattern: "a", TTL: -1}}, "ttl: -1ns is not within"},
		"a long ttl":               {[]FieldRule{{Pattern: "a", TTL: MaxLease + 1}}, "ttl: "},
		"grace below zero":         {[]FieldRule{{Pattern: "a", Grace: -2}}, "grace: -2ns is not within"},
		"max below zero":           {[]FieldRule{{Pattern: "a/*", Max: -1}}, "below zero"},
		"bytes below zero":         {[]FieldRule{{Pattern: "a", Bytes: -1}}, "below zero"},
		"max without a group":      {[]FieldRule{{Pattern: "a*", Max: 1}}, "max: it limits a group"},
		"max of all":               {[]FieldRule{{Pattern: "*", Max: 1}}, "max: it limits a group"},
		"max of one field":         {[]FieldRule{{Pattern: "seat/A1", Max: 1}}, "max: it limits the group seat/, so it belongs on seat/*"},
		"max of a part of a group": {[]FieldRule{{Pattern: "p/{n}/x", Max: 1}}, "max: it limits the group p/, so it belongs on p/*"},
		"max of a longer prefix":   {[]FieldRule{{Pattern: "p/x/*", Max: 1}}, "max: it limits the group p/"},
		"max twice in a group":     {[]FieldRule{{Pattern: "m/{user}", Max: 1}, {Pattern: "m/*", Max: 2}}, "fields.m/*: max: m/{user} already has the limit of the group m/"},
		"of a pattern":             {[]FieldRule{{Pattern: "a/*", Of: "b/*"}}, "of: it names one field"},
		"of without the part":      {[]FieldRule{{Pattern: "a/*", Of: "b/{n}"}}, "of: the pattern does not have {n}"},
		"of without the user":      {[]FieldRule{{Pattern: "a/*", Of: "b/{user}"}}, "of: the pattern does not have {user}"},
		"of itself":                {[]FieldRule{{Pattern: "a", Of: "a"}}, "of: a field cannot be a part of itself"},
		"of a backend field":       {[]FieldRule{{Pattern: "a", Of: "$b"}}, "of: "},
		"of a bad name":            {[]FieldRule{{Pattern: "a", Of: "b c"}}, `of: field "b c": character ' '`},
		"of a part":                {[]FieldRule{{Pattern: "a/{n}", Of: "b/{n}"}, {Pattern: "b/{n}", Of: "c/{n}"}}, "fields.b/{n}: of: a field that is part"},
		"a part with parts":        {[]FieldRule{{Pattern: "b/{n}", Of: "c/{n}"}, {Pattern: "a/{n}", Of: "b/{n}"}}, "fields.a/{n}: of: a field that is part"},
	} {
		if _, err := New([]Rule{{Name: "r", Fields: c.fields}}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func TestParseWrite(t *testing.T) {
	for text, want := range map[string]Access{"claim": Claim, "nobody": BackendOnly, "users grant": Users | Grant, "anyone": Anyone} {
		if got, err := ParseWrite(strings.Fields(text)...); err != nil || got != want {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"claim grant": "claim cannot be combined", "all": `"all" is none of anyone, named, grant, users and nobody, and it is not claim`, "": "want anyone",
	} {
		if _, err := ParseWrite(strings.Fields(text)...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
	if Claim.String() != "claim" {
		t.Error(Claim)
	}
}

func TestMatchField(t *testing.T) {
	r := mustSet(t, Rule{Name: "r", Fields: []FieldRule{
		{Pattern: "*"},
		{Pattern: "member/*"},
		{Pattern: "member/{n}"},
		{Pattern: "member/{user}"},
		{Pattern: "member/bob"},
		{Pattern: "own/{user}"},
		{Pattern: "p/{n}/*", Of: "member/{n}"},
		{Pattern: "p/{n}/color", Of: "member/{n}"},
		{Pattern: "p/{n}/{user}", Of: "own/{user}"},
		{Pattern: "p/1/*"},
		{Pattern: "seat/*"},
		{Pattern: "seat/A*"},
		{Pattern: "turn"},
		{Pattern: "x-{n}/y", Of: "turn"},
	}}).For("r")
	amy, odd := Subject{User: "amy"}, Subject{User: "a/b c"}
	for _, c := range []struct {
		subject            Subject
		name, rule, parent string
		otherUser          bool
	}{
		{amy, "turn", "turn", "", false},
		{amy, "turn2", "*", "", false},
		{amy, "tur", "*", "", false},
		{amy, "member/amy", "member/{user}", "", false},
		{amy, "member/bob", "member/bob", "", false},
		{amy, "member/eve", "member/{n}", "", false},
		{amy, "member/amy/x", "member/*", "", false},
		{amy, "member/", "*", "", false},
		{amy, "member", "*", "", false},
		{amy, "own/amy", "own/{user}", "", false},
		{amy, "own/amy2", "own/{user}", "", true}, // and not *
		{amy, "own/amy/x", "*", "", false},
		{amy, "own/", "*", "", false},
		{Subject{}, "own/amy", "own/{user}", "", true},
		{Subject{Backend: true}, "own/amy", "own/{user}", "", false},
		{Subject{Backend: true, User: "bob"}, "own/amy", "own/{user}", "", false},
		{Subject{}, "member/amy", "member/{n}", "", false},
		{odd, "own/a%2Fb%20c", "own/{user}", "", false},
		{odd, "own/a%2fb%20c", "own/{user}", "", true},
		{odd, "own/a/b", "*", "", false},
		{Subject{User: "a%2Fb"}, "own/a%2Fb", "own/{user}", "", true},
		{amy, "p/7/hat", "p/{n}/*", "member/7", false},
		{amy, "p/7/hat/x", "p/{n}/*", "member/7", false},
		{amy, "p/7/color", "p/{n}/color", "member/7", false},
		{amy, "p/7/colors", "p/{n}/*", "member/7", false},
		{amy, "p/7/amy", "p/{n}/{user}", "own/amy", false},
		{Subject{Backend: true}, "p/7/hat", "p/{n}/{user}", "own/hat", false},
		{amy, "p/7/", "*", "", false},
		{amy, "p//hat", "*", "", false},
		{amy, "p/1/hat", "p/1/*", "", false},
		{amy, "seat/B1", "seat/*", "", false},
		{amy, "seat/A1", "seat/A*", "", false},
		{amy, "seat/A", "seat/*", "", false},
		{amy, "x-3/y", "x-{n}/y", "turn", false},
		{amy, "$turn", "", "", false},
		{Subject{Backend: true}, "$$turn", "", "", false},
	} {
		m := r.MatchField(c.subject, c.name)
		rule := ""
		if m.Rule != nil {
			rule = m.Rule.Pattern
		}
		if rule != c.rule || m.Parent != c.parent || m.OtherUser != c.otherUser {
			t.Errorf("%+v, %s: rule %q, parent %q, other user %v; want %+v", c.subject, c.name, rule, m.Parent, m.OtherUser, c)
		}
	}
}

// TestPatternOrder checks that the order of the rules in the file does not matter.
func TestPatternOrder(t *testing.T) {
	patterns := []string{"a/b", "a/b*", "a/{user}/b", "a/{user}", "a/{user}/*", "a/{n}/bb", "a/{n}/b", "a/{n}", "a/*", "{user}", "{n}", "*"}
	reversed := make([]FieldRule, 0, len(patterns))
	for i := range patterns {
		reversed = append(reversed, FieldRule{Pattern: patterns[len(patterns)-1-i]})
	}
	for _, name := range []string{"a/b", "a/bb", "a/amy/b", "a/amy", "a/amy/c", "a/x/bb", "a/x/b", "a/x", "a/x/c", "amy", "x", "x/y"} {
		found := map[string]bool{}
		for range len(reversed) {
			reversed = append(reversed[1:], reversed[0])
			r := mustSet(t, Rule{Name: "r", Fields: reversed}).For("r")
			found[r.MatchField(Subject{User: "amy"}, name).Rule.Pattern] = true
		}
		if len(found) != 1 {
			t.Errorf("%s fits %v", name, found)
		}
	}
}

func TestFieldSettings(t *testing.T) {
	s := mustSet(t,
		Rule{Name: "defaults", Fields: []FieldRule{{Pattern: "a"}}},
		Rule{
			Name: "given", StateKeep: time.Hour, Grace: time.Minute,
			Fields: []FieldRule{{Pattern: "a"}, {Pattern: "m/{user}", Max: 4, Grace: GraceNever}, {Pattern: "m/*"}, {Pattern: "s/*", Max: 7, Grace: time.Second}},
		},
		Rule{Name: "forever", StateKeep: KeepForever, Grace: GraceNever},
	)
	defaults, given, forever := s.For("defaults"), s.For("given"), s.For("forever")
	rule := func(name string) *FieldRule { return given.MatchField(Subject{Backend: true}, name).Rule }
	for name, c := range map[string]struct{ got, want time.Duration }{
		"keep by default":        {defaults.Keep(), 24 * time.Hour},
		"keep":                   {given.Keep(), time.Hour},
		"keep forever":           {forever.Keep(), 0},
		"grace by default":       {defaults.GraceOf(nil), 15 * time.Second},
		"grace of the namespace": {given.GraceOf(rule("a")), time.Minute},
		"no grace":               {given.GraceOf(rule("m/x")), state.GraceNever},
		"grace of a pattern":     {given.GraceOf(rule("s/x")), time.Second},
		"never":                  {forever.GraceOf(nil), state.GraceNever},
	} {
		if c.got != c.want {
			t.Errorf("%s: %v, want %v", name, c.got, c.want)
		}
	}
	for group, want := range map[string]int{"m/": 4, "s/": 7, "": 0, "x/": 0} {
		if got := given.GroupMax(group); got != want {
			t.Errorf("group %q: %d, want %d", group, got, want)
		}
	}
}

// TestSubgroup checks the limit of the fields with one part.
func TestSubgroup(t *testing.T) {
	set, err := New([]Rule{{Name: "r", Fields: []FieldRule{
		{Pattern: "p/{n}/*", Max: 2}, {Pattern: "q/{user}/*", Max: 3}, {Pattern: "p/*", Max: 4}, {Pattern: "s/{n}/*"},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"p/3/x": "p/3/", "p/3/x/y": "p/3/", "p/3": "", "q/amy/x": "q/amy/", "s/1/x": ""} {
		if m := set.For("r").MatchField(Subject{User: "amy"}, name); m.Rule == nil || m.Group != want {
			t.Errorf("%s: %+v", name, m)
		}
	}
	if n := set.For("r").GroupMax("p/"); n != 4 {
		t.Errorf("p/ has the limit %d", n)
	}
}
