package queue

import (
	"fmt"
	"io/fs"
	"reflect"
	"regexp"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"switchboard/internal/state"
)

// TestScriptMembers packs an update in which all members differ, and reads each one by its name in
// Redis. It fails if appendUpdate, appendOp or appendCondition has another order than
// scriptMembers, or if the test does not set a field.
func TestScriptMembers(t *testing.T) {
	u := &state.Update{
		Ops: []state.Op{{
			Field: "op field", Kind: state.Add, Value: []byte("op value"), TTL: 3 * time.Millisecond, Own: state.Disown, Grace: 4 * time.Millisecond,
			Parent: "op parent", By: 5, Min: 6, Max: 7, Holder: "op holder", Group: "op group", GroupMax: 8, Claim: true, HeldParent: true,
		}},
		If:   []state.Condition{{Field: "cond field", Kind: state.AtMost, Max: 9}},
		Data: []byte("data"), Writer: "writer", Client: "client", Generation: 10, Server: "server", ByField: "by field", From: 11, Exclude: "excluded",
		Limits: state.Limits{Keep: 12 * time.Millisecond, Fields: 13, Bytes: 14, Owned: 15}, Counter: "counter", Take: 16,
	}
	for _, v := range []reflect.Value{reflect.ValueOf(*u), reflect.ValueOf(u.Ops[0]), reflect.ValueOf(u.If[0])} {
		for i := range v.NumField() {
			// Numbered is a part of Group, and an AtMost has Max in place of ID.
			if name := v.Type().Field(i).Name; v.Field(i).IsZero() && name != "Numbered" && name != "ID" {
				t.Errorf("the test does not set %s.%s", v.Type(), name)
			}
		}
	}
	want := map[string]string{
		"u.writer": "writer", "u.keep": "12", "u.max_fields": "13", "u.max_bytes": "14", "u.data": "data", "u.client": "client",
		"u.generation": "10", "u.server": "server", "u.max_owned": "15", "u.client_json": `"client"`, "u.take": "16", "u.arg": "arg",
		"u.by_field": "by field", "u.from": "11", "u.exclude_json": `"excluded"`,
		"op.field": "op field", "op.kind": "3", "op.value": "op value", "op.lease": "3", "op.claim": "true", "op.group_max": "8", "op.own": "2",
		"op.grace": "4", "op.parent": "op parent", "op.held_parent": "true", "op.by": "5", "op.min": "6", "op.max": "7",
		"op.holder": "op holder", "op.group": "op group",
		"cond.field": "cond field", "cond.kind": "3", "cond.id": "9",
	}
	source := must(named{fstest.MapFS{"script": {Data: []byte(`
		local u = {cmsgpack.unpack(ARGV[1])}
		local variable, list = ({u = u, op = u.ops[2], cond = u.conditions[1]})[ARGV[2]], {}
		for i = 1, tonumber(ARGV[3]) do
			list[i] = tostring(variable[i])
		end
		return list`)}}}.ReadFile("script"))(t)
	p := make(packer, 0, 256)
	appendUpdate(&p, u, "arg")
	for variable, members := range scriptMembers {
		values := must(server.Client(t).Eval(t.Context(), string(source), nil, string(p[1:]), variable, len(members)+1).StringSlice())(t)
		for i, member := range append(slices.Clone(members), "a further member") {
			name := variable + "." + member
			switch {
			case name == "u.ops", name == "u.conditions": // used above
			case i == len(members):
				equal(t, name, values[i], "nil")
			default:
				equal(t, name, values[i], want[name])
			}
		}
	}
}

// TestScriptsNameMembers checks that no script has a number where a member has a name.
func TestScriptsNameMembers(t *testing.T) {
	position := regexp.MustCompile(`\b(u|op|cond|ops\[\w+\]|conditions\[\w+\])\[\d`)
	for _, files := range []fs.FS{luaFiles, testFiles} {
		ok(t, fs.WalkDir(files, ".", func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			if found := position.Find(must(fs.ReadFile(files, path))(t)); found != nil {
				t.Errorf("%s: %s: name the member", path, found)
			}
			return nil
		}))
	}
}

// TestUnknownMember: a script with a name that no member has is a programming error.
func TestUnknownMember(t *testing.T) {
	defer func() {
		if text := fmt.Sprint(recover()); text != "script: op.leese is not a member" {
			t.Error(text)
		}
	}()
	_, _ = named{fstest.MapFS{"script": {Data: []byte("return op.leese")}}}.ReadFile("script")
}
