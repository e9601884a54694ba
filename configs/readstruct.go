package configs

import (
	"errors"
	"reflect"

	"go.yaml.in/yaml/v3"

	"switchboard/broker/namespace"
)

// readInto reads a node into a value: a bool, a positive number, a duration, a text, a list of
// texts, a section of a struct whose fields have the tag setting, or a section of a map whose names
// the operator chooses. A pointer is set to a new value first; nothing after its key means the
// defaults. It is for the sections that belong to other packages.
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
	case v.Type() == durationType:
		value, err = duration(node)
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
	fields := map[string]reflect.Value{}
	var names []string
	for i := range v.NumField() {
		if name := v.Type().Field(i).Tag.Get("setting"); name != "" && name != "-" {
			fields[name] = v.Field(i)
			names = append(names, name)
		}
	}
	return each(node, key, func(name string, value *yaml.Node) error {
		field, known := fields[name]
		if !known {
			return unknownKey(names...)
		}
		return readInto(value, join(key, name), field)
	})
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
