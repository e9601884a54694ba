package configs

import (
	"errors"
	"maps"
	"reflect"
	"time"

	"go.yaml.in/yaml/v3"

	"switchboard/broker/namespace"
)

// readInto reads a node into a value: a bool, a positive number, a duration, a text, a list of
// texts, a namespace.Access, a section of a struct whose fields have the tag setting, or a section
// of a map whose names the operator chooses. The fields of an embedded struct are fields of the
// section. A pointer is set to a new value first; nothing after its key means the defaults. It is
// for the sections that belong to other packages.
func readInto(node *yaml.Node, key string, v reflect.Value) error {
	if node.ShortTag() == "!!null" && v.Kind() != reflect.Pointer && v.Kind() != reflect.Struct {
		return errors.New("there is no value; remove the line for the default")
	}
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		return readInto(node, key, v.Elem())
	case reflect.Struct:
		return readStruct(node, key, v)
	case reflect.Map:
		return readMap(node, key, v)
	case reflect.Slice:
		if v.Type().Elem() == reflect.TypeFor[namespace.FieldRule]() {
			return readFieldRules(node, key, v)
		}
		list, err := listOrText(node)
		v.Set(reflect.ValueOf(list))
		return err
	}
	return readScalar(node, v)
}

func readScalar(node *yaml.Node, v reflect.Value) error {
	var value any
	var err error
	switch {
	case v.Type() == reflect.TypeFor[time.Duration]():
		value, err = duration(node)
	case v.Type() == reflect.TypeFor[namespace.Access]():
		value, err = access(node)
	case v.Kind() == reflect.Bool:
		value, err = boolean(node)
	case v.Kind() == reflect.Int:
		value, err = whole(node)
	case v.Kind() == reflect.Float64:
		value, err = positive(node)
	default:
		value, err = text(node)
	}
	if err == nil {
		v.Set(reflect.ValueOf(value).Convert(v.Type()))
	}
	return err
}

func readStruct(node *yaml.Node, key string, v reflect.Value) error {
	if node.ShortTag() == "!!null" {
		return nil
	}
	names, fields := settingsOf(v)
	return each(node, key, func(name string, value *yaml.Node) error {
		field, known := fields[name]
		if !known {
			return unknownKey(names...)
		}
		return readInto(value, join(key, name), field)
	})
}

// settingsOf returns the fields of a struct that have the tag setting, and their names in order.
func settingsOf(v reflect.Value) (names []string, fields map[string]reflect.Value) {
	fields = map[string]reflect.Value{}
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if field.Anonymous {
			more, embedded := settingsOf(v.Field(i))
			names = append(names, more...)
			maps.Copy(fields, embedded)
		} else if name := field.Tag.Get("setting"); name != "" && name != "-" {
			fields[name] = v.Field(i)
			names = append(names, name)
		}
	}
	return names, fields
}

func readMap(node *yaml.Node, key string, v reflect.Value) error {
	v.Set(reflect.MakeMap(v.Type()))
	return each(node, key, func(name string, value *yaml.Node) error {
		element := reflect.New(v.Type().Elem()).Elem()
		if err := readInto(value, join(key, name), element); err != nil {
			return err
		}
		v.SetMapIndex(reflect.ValueOf(name), element)
		return nil
	})
}

// readFieldRules reads the rules of fields, as in a namespace.
func readFieldRules(node *yaml.Node, key string, v reflect.Value) error {
	r := namespace.Rule{Name: "kit:*"}
	if err := fieldRules(&r, node, key); err != nil {
		return err
	}
	v.Set(reflect.ValueOf(r.Fields))
	return nil
}
