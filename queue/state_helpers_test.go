package queue

import (
	"errors"
	"reflect"
	"strings"
	"testing"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// room is the channel of most tests of states.
const room = "room:7"

func set(field, value string) state.Op {
	return state.Op{Field: field, Kind: state.Set, Value: []byte(value)}
}

func add(field string, by int64) state.Op {
	return state.Op{Field: field, Kind: state.Add, By: by, Max: 10}
}

// own returns op with the client as owner.
func own(op state.Op, grace time.Duration) state.Op {
	op.Own, op.Grace = state.Own, grace
	return op
}

func leased(op state.Op, ttl time.Duration) state.Op {
	op.TTL = ttl
	return op
}

func part(op state.Op, parent string) state.Op {
	op.Parent = parent
	return op
}

// amy is the connection of a client whose id has to be escaped in JSON.
var amy = state.Connection{Client: `amy/"p\1`, Generation: 5, Server: "s1"}

// bob is a connection to another server.
var bob = state.Connection{Client: "bob/tab", Generation: 5, Server: "s2"}

// update applies operations of the backend.
func (f fixture) update(t *testing.T, ops ...state.Op) (Appended, error) {
	t.Helper()
	return f.AppendChannel(t.Context(), ChannelPush{Channel: room, Update: &state.Update{Ops: ops, Writer: state.BackendHolder}})
}

// updateBy applies operations of a client.
func (f fixture) updateBy(t *testing.T, c state.Connection, ops ...state.Op) (Appended, error) {
	t.Helper()
	user, _, _ := strings.Cut(c.Client, "/")
	return f.AppendChannel(t.Context(), ChannelPush{Channel: room, Update: &state.Update{
		Ops: ops, Writer: state.UserHolder(user), Client: c.Client, Generation: c.Generation, Server: c.Server,
	}})
}

func (f fixture) stepState(t *testing.T, kind StepKind, c state.Connection) (Appended, error) {
	t.Helper()
	o := f.StepStates(t.Context(), []StateStep{{Channel: room, Kind: kind, Conn: c}})[0]
	return o.Value, o.Err
}

// wantState checks the live fields and their values. It also checks that the log gives the same
// fields, and over Redis that the records agree.
func (f fixture) wantState(t *testing.T, what string, want map[string]string) StatePage {
	t.Helper()
	o := f.ReadStates(t.Context(), []StateRead{{Channel: room}})[0]
	page := must(o.Value, o.Err)(t)
	got, shown := map[string]string{}, map[string]state.Shown{}
	for _, field := range page.Fields {
		got[field.Name], shown[field.Name] = string(field.Value), field.Show()
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
	fold := state.NewMap(0)
	for _, m := range must(f.ReadChannel(t.Context(), room, 0, 1000))(t).Messages {
		if state.IsEntry(m.Data) {
			fold.Apply(m.ID, must(state.DecodeEntry(m.Data))(t))
		}
	}
	fold.Expire(page.Clock)
	for name, field := range fold.Fields {
		if field.Owners != nil && len(field.Owners) == 0 {
			field.Owners = nil
			fold.Fields[name] = field
		}
	}
	if !reflect.DeepEqual(fold.Fields, shown) {
		t.Errorf("%s: the log gives %+v, the page %+v", what, fold.Fields, shown)
	}
	if f.rdb != nil {
		checkStateRecords(t, f.rdb, f.keys, room)
	}
	return page
}

// wantEntry checks the entry that a change has appended, as JSON.
func wantEntry(t *testing.T, what string, a Appended, want string) {
	t.Helper()
	equal(t, what, normal(t, a.Data), want)
}

// wantRefusal checks that err is a refusal, and returns it.
func wantRefusal(t *testing.T, what string, err error, code wire.ErrorCode) *state.Refusal {
	t.Helper()
	refusal, is := errors.AsType[*state.Refusal](err)
	if !is || refusal.Err.Code != code {
		t.Fatalf("%s: got %v, want a refusal with the code %s", what, err, code)
	}
	if OutcomeUnknown(err) {
		t.Errorf("%s: the outcome of a refusal is known", what)
	}
	return refusal
}
