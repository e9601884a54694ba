package strict

import (
	"encoding/json"
	"reflect"
	"strings"
	"sync"

	"switchboard/internal/wire"
)

// shape is what a JSON value must look like to fit a Go type.
type shape struct {
	kind    string             // what errors call it, such as "an integer"; "" if the type decodes itself
	null    bool               // null is a value of the type
	members map[string]*member // of a struct, else nil
	inOrder []*member          // the same, in the order of the struct
	item    *shape             // of a list or a map; nil for a type that decodes itself
}

// member is a member of an object.
type member struct {
	name     string
	index    int // below 64
	required bool
	*shape
}

// shapes has a *shape for each reflect.Type that was decoded.
var shapes sync.Map

// shapeOf returns the shape of a type.
func shapeOf(t reflect.Type) *shape {
	if s, found := shapes.Load(t); found {
		return s.(*shape)
	}
	s, _ := shapes.LoadOrStore(t, newShape(t))
	return s.(*shape)
}

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	anyJSON     = reflect.TypeFor[json.RawMessage]()
)

// newShape makes the shape of a type. No request refers to itself, so it ends.
func newShape(t reflect.Type) *shape {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	s := &shape{kind: wire.KindOf(t), null: t == anyJSON || t.Kind() == reflect.Interface}
	switch {
	case reflect.PointerTo(t).Implements(unmarshaler):
		s.kind = ""
		if list := t.Kind() == reflect.Slice || t.Kind() == reflect.Map; list && t.Elem().Kind() == reflect.String {
			s.item = newShape(t.Elem())
		}
	case t.Kind() == reflect.Struct:
		s.addMembers(t)
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Map:
		s.item = newShape(t.Elem())
	}
	return s
}

// addMembers adds the members of a struct, with those of embedded structs.
func (s *shape) addMembers(t reflect.Type) {
	if s.members == nil {
		s.members = map[string]*member{}
	}
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct:
			s.addMembers(f.Type)
			continue
		case name == "-" || name == "" || !f.IsExported():
			continue
		}
		m := &member{name, len(s.members), f.Tag.Get("required") == "true", newShape(f.Type)}
		if m.index == 64 {
			panic("strict: more than 64 members in " + t.String())
		}
		s.members[name] = m
		s.inOrder = append(s.inOrder, m)
	}
}
