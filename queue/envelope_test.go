package queue

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"switchboard/internal/state"
)

// testUpdateMembers checks that each member of a state.Message is in the entry of an update. It
// finds them by reflection, because a script that does not know a member drops it.
func testUpdateMembers(t *testing.T, publish func(state.Update) Appended) {
	t.Helper()
	typ := reflect.TypeFor[state.Message]()
	for i := range typ.NumField() {
		name := typ.Field(i).Name
		if name == "By" || name == "Data" { // those of publish
			continue
		}
		var u state.Update
		switch member := reflect.ValueOf(&u).Elem().FieldByName(name); {
		case member.CanInt():
			member.SetInt(7)
		case member.Kind() == reflect.Bool:
			member.SetBool(true)
		default:
			member.SetString("text")
		}
		e, err := state.DecodeEntry(publish(u).Data)
		if err != nil || reflect.ValueOf(e.Message()).Field(i).IsZero() {
			t.Errorf("the entry of an update with %s is %+v, %v", name, e, err)
		}
	}
}

// testAuthors checks what the entry of an update has besides its changes and its data.
func testAuthors(t *testing.T, open opener) {
	f := open(t, Options{})
	publish := func(u state.Update) Appended {
		t.Helper()
		u.Data, u.Client, u.Generation, u.Server, u.Writer = []byte(`{"n":1}`), amy.Client, amy.Generation, amy.Server, "u:amy"
		return must(f.AppendChannel(t.Context(), ChannelPush{Channel: room, Update: &u}))(t)
	}
	wantEntry(t, "the client", publish(state.Update{}), `~{"by":"amy/\"p\\1","data":{"n":1}}`)
	wantEntry(t, "excluded", publish(state.Update{Exclude: amy.Client}), `~{"by":"amy/\"p\\1","exclude":"amy/\"p\\1","data":{"n":1}}`)
	wantEntry(t, "no alias", publish(state.Update{ByField: "name/amy"}), `~{"from":"amy/\"p\\1","data":{"n":1}}`)
	wantEntry(t, "the alias that the update sets", publish(state.Update{ByField: "name/amy", Ops: []state.Op{set("name/amy", `"A"`)}}),
		`~{"set":{"name/amy":"A"},"by":"A","from":"amy/\"p\\1","data":{"n":1}}`)
	longest := strings.Repeat("é", state.MaxAlias/2)
	for value, alias := range map[string]string{
		`"Amy Smith"`: "Amy Smith", `"a\"b\\c"`: `a"b\c`, `"\u0041"`: "A", `"` + longest + `"`: longest,
		`"` + longest + `x"`: "", `""`: "", `" x"`: "", `"a\nb"`: "", `"\u0000"`: "", `"` + "\u0085" + `"`: "", `"\u0085"`: "", `7`: "", `null`: "", `{"a":"b"}`: "", `["a"]`: "",
	} {
		must(f.update(t, set("name/amy", value)))(t)
		a := publish(state.Update{ByField: "name/amy", Exclude: "bob"})
		e, err := state.DecodeEntry(a.Data)
		if err != nil || e.By != alias || e.From != amy.Client || e.Exclude != "bob" || string(e.Data) != `{"n":1}` {
			t.Errorf("with the field %s, the entry is %s, want the alias %q: %v", value, a.Data, alias, err)
		}
	}
	testUpdateMembers(t, publish)
	message := state.Entry{By: amy.Client, Exclude: bob.Client, Data: json.RawMessage(`"hi"`)}
	id := must(f.AppendChannel(t.Context(), ChannelPush{Channel: room, Data: message.Encode()}))(t).ID
	page := must(f.ReadChannel(t.Context(), room, id-1, 1))(t)
	if len(page.Messages) != 1 || string(page.Messages[0].Data) != `~{"by":"amy/\"p\\1","exclude":"bob/tab","data":"hi"}` {
		t.Errorf("a message is read as %v", page.Messages)
	}
}
