package fields

import (
	"encoding/json"
	"errors"
	"testing"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// FuzzBuild checks every update that Build accepts: its fields, its values, and that the state
// takes it. A refusal is always a *wire.Error.
func FuzzBuild(f *testing.F) {
	for _, change := range []string{
		`{"set":{"member/amy":{"a":[1,"é"]}},"own":true,"ttl":1.5}`, `{"del":["seat/1","a"],"if":{"a":0,"b":true,"c":7}}`,
		`{"add":{"any/n":{"by":1,"min":-2,"max":3},"any/m":-1}}`, `{"touch":["p/1/hat"],"own":false}`,
		`{"set":{"$x":1,"$$y":null},"of":{"$$y":"n/1"}}`, `{"set":{"n/1":1},"ttl":0}`, `{"set":null,"add":{"":1e3}}`,
	} {
		f.Add([]byte(change), "amy", uint8(0))
		f.Add([]byte(change), "", uint8(1))
		f.Add([]byte(change), "a/b", uint8(2))
	}
	set := testSet(f)
	f.Fuzz(func(t *testing.T, text []byte, user string, kind uint8) {
		var change wire.Change
		if json.Unmarshal(text, &change) != nil {
			return
		}
		w := amy()
		w.User, w.Backend, w.HasState = user, kind&1 != 0, kind&2 == 0
		u, err := Build(set, w, "room:1", &change, nil, testLimits, 200)
		if err != nil {
			if _, ok := errors.AsType[*wire.Error](err); !ok {
				t.Fatalf("%s: %T %v", text, err, err)
			}
			return
		}
		checkUpdate(t, u, w)
		s, id := state.New(), int64(0)
		result, err := s.Apply(u, 1000, func() int64 { id++; return id })
		if _, refused := errors.AsType[*state.Refusal](err); err != nil && !refused {
			t.Fatalf("%s: %v", text, err)
		}
		m := state.NewMap(0)
		for _, logged := range result.Entries {
			e, err := state.DecodeEntry(logged.Entry.Encode())
			if err != nil {
				t.Fatalf("%s: %v", text, err)
			}
			m.Apply(logged.ID, e)
		}
		if names, _, _ := s.Read(1000, "", "", 0, 0); len(names) != len(m.Fields) {
			t.Fatalf("%s: the state has %v, the fold of its log %v", text, names, m.Names())
		}
	})
}

func checkUpdate(t *testing.T, u *state.Update, w *Writer) {
	t.Helper()
	if len(u.Ops) == 0 || len(u.Ops) > testLimits.Operations || len(u.If) > testLimits.Operations {
		t.Fatalf("%d operations, %d conditions", len(u.Ops), len(u.If))
	}
	seen := map[string]bool{}
	for _, op := range u.Ops {
		switch {
		case state.CheckName(op.Field) != nil || seen[op.Field]:
			t.Fatalf("%q is a bad name, or appears twice", op.Field)
		case !w.Backend && state.IsBackend(op.Field):
			t.Fatalf("a client writes %s", op.Field)
		case (op.Kind == state.Set) != (op.Value != nil), op.Value != nil && !json.Valid(op.Value), len(op.Value) > testLimits.FieldBytes:
			t.Fatalf("%s: value %q", op.Field, op.Value)
		case op.Kind == state.Add && (max(op.By, op.Max) > state.MaxNumber || min(op.By, op.Min) < -state.MaxNumber || op.Min > op.Max):
			t.Fatalf("%s: %+v", op.Field, op)
		case op.TTL < 0, op.Own == state.Own && !w.HasState, w.Backend && (op.Claim || op.HeldParent), op.HeldParent && op.Parent == "":
			t.Fatalf("%+v", op)
		}
		seen[op.Field] = true
	}
	for _, c := range u.If {
		if state.CheckName(c.Field) != nil || !w.Backend && state.IsHidden(c.Field) || (c.Kind == state.IsID) != (c.ID > 0) {
			t.Fatalf("%+v", c)
		}
	}
}

// FuzzName checks that Build accepts exactly the names that CheckName accepts, from the backend.
func FuzzName(f *testing.F) {
	for _, name := range []string{"a", "$a", "$$a", "$$$a", "a$", "a/b%2F", "", "é", "a b", "a\n", "$", "$max/seat/"} {
		f.Add(name)
	}
	set := testSet(f)
	f.Fuzz(func(t *testing.T, name string) {
		for _, change := range []wire.Change{{Del: []string{name}}, {Touch: []string{name}}, {Del: []string{"x-x"}, If: wire.Values{{Name: name, JSON: []byte("0")}}}} {
			if _, err := Build(set, backend(), "room:1", &change, nil, StateLimits{}, 0); (err == nil) != (state.CheckName(name) == nil) {
				t.Fatalf("%q: %v", name, err)
			}
		}
	})
}
