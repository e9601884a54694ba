package native

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"testing"
	"unicode/utf8"

	"switchboard/internal/wire"
)

// These tests find the members of events by reflection: a new member that the encoders without
// encoding/json do not know would be dropped silently.

// values fills fields of events.
type values struct {
	text   string
	number int64
	flag   bool
	raw    json.RawMessage
}

var someValues = values{"a", 7, true, json.RawMessage(`{"x":[4,"b"]}`)}

// set sets a field, or all fields of a struct, to a value that is not zero.
func (v values) set(field reflect.Value) {
	switch {
	case field.Type() == reflect.TypeFor[json.RawMessage]():
		field.SetBytes(v.raw)
	case field.Type() == reflect.TypeFor[wire.Ref]():
		field.Set(reflect.ValueOf(wire.RefOf(v.number)))
	case field.Kind() == reflect.Pointer:
		field.Set(reflect.New(field.Type().Elem()))
		v.set(field.Elem())
	case field.Kind() == reflect.Struct:
		for i := range field.NumField() {
			v.set(field.Field(i))
		}
		for i := range field.NumField() { // a member hides one of the same name in an embedded struct
			for k := range field.NumField() {
				if inner := field.Field(k); field.Type().Field(k).Anonymous && i != k {
					if hidden := inner.Elem().FieldByName(field.Type().Field(i).Name); hidden.IsValid() {
						hidden.SetZero()
					}
				}
			}
		}
	case field.Kind() == reflect.Slice:
		field.Set(reflect.MakeSlice(field.Type(), 2, 2))
		v.set(field.Index(0))
		v.set(field.Index(1))
	case field.Kind() == reflect.Map:
		field.Set(reflect.MakeMap(field.Type()))
		for _, name := range []string{v.text, v.text + "b"} {
			value := reflect.New(field.Type().Elem()).Elem()
			v.set(value)
			field.SetMapIndex(reflect.ValueOf(name), value)
		}
	case field.Kind() == reflect.String:
		field.SetString(v.text)
	case field.Kind() == reflect.Bool:
		field.SetBool(v.flag)
	case field.CanInt():
		field.SetInt(v.number)
	default:
		panic(fmt.Sprintf("no value for the type %s", field.Type()))
	}
}

// members returns the indices of the members of an event, with those of embedded structs.
func members(t reflect.Type, at []int) (list [][]int) {
	for i := range t.NumField() {
		f, index := t.Field(i), append(at[:len(at):len(at)], i)
		if f.Anonymous {
			list = append(list, members(f.Type.Elem(), index)...)
		} else {
			list = append(list, index)
		}
	}
	return list
}

// field returns a member of an event. It allocates the embedded struct that has it.
func field(e *wire.Event, index []int) reflect.Value {
	v := reflect.ValueOf(e).Elem()
	for i, n := range index {
		if v.Kind() == reflect.Pointer && i > 0 {
			if v.IsNil() {
				v.Set(reflect.New(v.Type().Elem()))
			}
			v = v.Elem()
		}
		v = v.Field(n)
	}
	return v
}

// types are those of events that have an encoder of their own, and another one.
var types = []string{wire.TypeMessage, wire.TypeHere, wire.TypePresence}

// TestMembers encodes events of each type with one member besides the usual ones, which may be
// those of a message with an author, and decodes them.
func TestMembers(t *testing.T) {
	id := int64(5)
	for _, typ := range types {
		for _, index := range members(reflect.TypeFor[wire.Event](), nil) {
			for _, e := range []wire.Event{
				{Type: typ},
				{Type: typ, Client: "c", User: "u", Channel: "ch", ID: &id, Data: json.RawMessage(`1`)},
				{Type: typ, Channel: "ch", ID: &id, Data: json.RawMessage(`1`), StateEvent: &wire.StateEvent{By: "b"}},
			} {
				name := reflect.TypeFor[wire.Event]().FieldByIndex(index).Name
				if name != "Type" {
					someValues.set(field(&e, index))
				}
				got := AppendEvent(nil, &e)
				if want := appendAny(nil, e); string(got) != string(want) {
					t.Errorf("%s with %s:\n%s, want\n%s", typ, name, got, want)
				}
				if back, err := wire.DecodeEvent(got); err != nil || !reflect.DeepEqual(back, e) {
					t.Errorf("%s with %s: %s is decoded as %+v, %v", typ, name, got, back, err)
				}
			}
		}
	}
}

// FuzzMembers checks that events with any members are encoded as encoding/json does. Each bit of
// mask chooses a member.
func FuzzMembers(f *testing.F) {
	f.Add(uint64(0), uint8(0), "a", int64(5), true, []byte(`1`))
	f.Add(^uint64(0), uint8(1), "no room <b> for \"x\"\n\u2028 \x7f \xff é", int64(-1), true, []byte(`{"x":[4,"<"]}`))
	for i := range 64 {
		f.Add(uint64(1)<<i, uint8(2), "é", int64(1795330758518), true, []byte(`[1, 2]`))
		f.Add(^(uint64(1) << i), uint8(2), "a", int64(0), false, []byte("null\n"))
	}
	f.Fuzz(func(t *testing.T, mask uint64, typ uint8, text string, number int64, flag bool, raw []byte) {
		e := wire.Event{Type: types[int(typ)%len(types)]}
		v := values{text, number, flag, raw}
		for i, index := range members(reflect.TypeFor[wire.Event](), nil) {
			if i > 0 && mask&(1<<i) != 0 {
				v.set(field(&e, index))
			}
		}
		var compact bytes.Buffer
		if json.Compact(&compact, raw) != nil || !utf8.Valid(raw) {
			return
		}
		if e.Type == wire.TypeMessage && e.Data != nil { // the broker makes it compact
			e.Data = compact.Bytes()
		}
		if e.StateEvent != nil && e.Fields != nil { // the broker encodes them itself
			e.Fields = compact.Bytes()
		}
		if got, want := AppendEvent(nil, &e), appendAny(nil, e); string(got) != string(want) {
			t.Fatalf("%+v:\n%s, want\n%s", e, got, want)
		}
	})
}
