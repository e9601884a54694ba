package configs

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"switchboard/broker/namespace"
)

func TestFieldRules(t *testing.T) {
	b, err := LoadBroker([]string{"--config", write(t, "b.yaml", `namespaces:
  "room:*":
    state: [users, grant]
    state_keep: forever
    needs: $$user/{user}
    by: $$number/{user}
    grace: 1m
    fields:
      "member/{user}": {write: users, own: always, max: 4}
      "seat/*":        {write: claim, ttl: 10m, max: 100, bytes: 256, grace: never}
      "doc/*":         {write: [grant, users]}
      "p/{n}/*":       {write: anyone, of: "member/{n}", grace: 2s}
      "closed":        {}
  news: {state_keep: 1h, grace: never, fields_gone: true, durable: [users, grant]}
`)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := b.Options()
	if err != nil {
		t.Fatal(err)
	}
	r := o.Access.Namespaces.For("room:1")
	want := []namespace.FieldRule{
		{Pattern: "member/{user}", Write: namespace.Users, Own: true, Max: 4},
		{Pattern: "seat/*", Write: namespace.Claim, TTL: 10 * time.Minute, Max: 100, Bytes: 256, Grace: namespace.GraceNever},
		{Pattern: "doc/*", Write: namespace.Users | namespace.Grant},
		{Pattern: "p/{n}/*", Write: namespace.Anyone, Of: "member/{n}", Grace: 2 * time.Second},
		{Pattern: "closed"},
	}
	if !reflect.DeepEqual(r.Fields, want) || r.State != namespace.Users|namespace.Grant || r.StateKeep != namespace.KeepForever || r.Grace != time.Minute || r.FieldsGone || r.Needs != "$$user/{user}" || r.By != "$$number/{user}" || r.Durable != namespace.BackendOnly {
		t.Errorf("got %+v", r)
	}
	if r := o.Access.Namespaces.For("news"); r.StateKeep != time.Hour || r.Grace != namespace.GraceNever || r.State != namespace.BackendOnly || r.Durable != namespace.Users|namespace.Grant || !r.FieldsGone {
		t.Errorf("got %+v", r)
	}
}

func TestBadFieldRules(t *testing.T) {
	for name, c := range map[string]struct{ yaml, want string }{
		"fields as a list":      {"  fields: [a]\n", "line 3: namespaces.room:*.fields: want settings"},
		"a pattern as a word":   {"  fields:\n   a: users\n", "line 4: namespaces.room:*.fields.a: want settings"},
		"an unknown key":        {"  fields:\n   a:\n    write: users\n    rate: 7\n", "line 6: namespaces.room:*.fields.a.rate: unknown key; want write, own, "},
		"an unknown word":       {"  fields:\n   a: {write: all}\n", `line 4: namespaces.room:*.fields.a.write: "all" is none of anyone, named, grant, users and nobody, and it is not claim`},
		"claim and more":        {"  fields:\n   a: {write: [claim, users]}\n", "line 4: namespaces.room:*.fields.a.write: claim cannot be combined"},
		"own: sometimes":        {"  fields:\n   a: {own: sometimes}\n", "line 4: namespaces.room:*.fields.a.own: want always, or no such key"},
		"no ttl":                {"  fields:\n   a: {ttl: 0s}\n", "line 4: namespaces.room:*.fields.a.ttl: want a duration"},
		"no grace":              {"  fields:\n   a: {grace: no}\n", `line 4: namespaces.room:*.fields.a.grace: want a duration like 2s or 30m, got "no"; or never`},
		"no max":                {"  fields:\n   a/*: {max: 0}\n", "line 4: namespaces.room:*.fields.a/*.max: want a whole number above zero"},
		"no bytes":              {"  fields:\n   a: {bytes: 1KiB}\n", "line 4: namespaces.room:*.fields.a.bytes: want a whole number"},
		"no parent":             {"  fields:\n   a: {of: [b]}\n", "line 4: namespaces.room:*.fields.a.of: want text"},
		"a bad pattern":         {"  fields:\n   a: {}\n   '*/b': {}\n", "line 5: namespaces.room:*.fields.*/b: a * may stand at the end only"},
		"a pattern twice":       {"  fields:\n   a: {}\n   a: {}\n", "line 5: namespaces.room:*.fields.a: it is given twice"},
		"no group":              {"  fields:\n   a: {max: 1}\n", "line 4: namespaces.room:*.fields.a: max: it limits a group"},
		"max twice":             {"  fields:\n   a/*: {max: 1}\n   'a/{n}': {max: 1}\n", "line 5: namespaces.room:*.fields.a/{n}: max: a/* already has"},
		"parts of parts":        {"  fields:\n   a: {of: b}\n   b: {of: c}\n", "line 5: namespaces.room:*.fields.b: of: a field that is part"},
		"named":                 {"  fields:\n   a: {write: named}\n", "line 4: namespaces.room:*.fields.a: write: named needs {user}"},
		"the state for named":   {"  state: named\n", "line 2: namespaces.room:*: state: named needs {user}"},
		"the state for claim":   {"  state: claim\n", `line 3: namespaces.room:*.state: "claim" is none of`},
		"no time to keep":       {"  state_keep: never\n", `line 3: namespaces.room:*.state_keep: want a duration like 2s or 30m, got "never"; or forever`},
		"no grace of the state": {"  grace: -1s\n", "line 3: namespaces.room:*.grace: want a duration"},
		"no truth value":        {"  fields_gone: 1\n", "line 3: namespaces.room:*.fields_gone: want true or false"},
		"a bad field of needs":  {"  needs: a b\n", "line 2: namespaces.room:*: needs: "},
		"a bad field of by":     {"  by: a{b}\n", "line 2: namespaces.room:*: by: "},
		"by as a list":          {"  by: [a]\n", "line 3: namespaces.room:*.by: want text"},
		"a long grace":          {"  grace: 100000h\n", "line 2: namespaces.room:*: grace: "},
	} {
		_, err := LoadBroker([]string{"--config", write(t, "b.yaml", "namespaces:\n 'room:*':\n"+c.yaml)}, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	// An error in the name of the namespace is not an error of its fields.
	_, err := LoadBroker([]string{"--config", write(t, "b.yaml", "namespaces:\n 'room*':\n  fields:\n   a: {}\n")}, nil)
	if want := `line 2: namespaces.room*: "room*": a colon belongs`; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// TestNamespacesInDocs loads the namespaces that docs/access.md shows.
func TestNamespacesInDocs(t *testing.T) {
	text, err := os.ReadFile("../docs/access.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, block := range strings.Split(string(text), "```yaml\n")[1:] {
		yaml, _, _ := strings.Cut(block, "```")
		if !strings.HasPrefix(strings.TrimPrefix(yaml, "# b.yaml\n"), "namespaces:") {
			continue
		}
		found++
		b, err := LoadBroker([]string{"--config", write(t, "b.yaml", yaml)}, nil)
		if err != nil {
			t.Errorf("%v in\n%s", err, yaml)
			continue
		}
		for field, want := range map[string]bool{"member/amy": true, "member/bob": false, "p/amy/color": true, "seat/A1": true, "doc/title": false, "status": false} {
			if r := b.Namespaces.For("room:7"); r == nil {
				break
			}
			if got, why := b.Namespaces.DecideField(namespace.Subject{User: "amy"}, "room:7", field); got != want {
				t.Errorf("%s: %s", field, why)
			}
		}
	}
	if found < 2 {
		t.Errorf("%d examples of namespaces, want 2 at least", found)
	}
}

func TestStateLimits(t *testing.T) {
	b, err := LoadBroker([]string{"--config", write(t, "b.yaml", "limits: {fields: 1, state_bytes: 2, field_bytes: 3, operations: 4, owned_fields: 5}\n")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	o, err := b.Options()
	if l := o.Limits; err != nil || l.Fields != 1 || l.StateBytes != 2 || l.FieldBytes != 3 || l.Operations != 4 || l.OwnedFields != 5 {
		t.Errorf("%v, %+v", err, l)
	}
	if _, err := LoadBroker(nil, []string{"SWITCHBOARD_LIMITS_FIELDS=0"}); err == nil || !strings.Contains(err.Error(), "want more than zero") {
		t.Errorf("limits.fields: 0: %v", err)
	}
}
