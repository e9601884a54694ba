package configs

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// readFileValues reads the values of the settings from a YAML file. It refuses other keys and
// values of a wrong type, with their lines.
func readFileValues(rows []*row, path string) (values, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, withoutPath(err)
	}
	f := file{rows: map[string]*row{}, sections: map[string]bool{}, values: values{}}
	for _, r := range rows {
		f.rows[r.Key] = r
		if section, _, nested := strings.Cut(r.Key, "."); nested {
			f.sections[section] = true
		}
	}
	root, err := parseYAML(text)
	if err != nil || root == nil {
		return nil, err
	}
	return f.values, f.read(root, "")
}

// file is a configuration file while it is read.
type file struct {
	rows     map[string]*row // permitted, by key
	sections map[string]bool // permitted
	values   values          // found so far
}

// read adds the values of a mapping. section is the key that leads to it, "" for the whole file.
func (f file) read(node *yaml.Node, section string) error {
	return entries(node, section, func(name, value *yaml.Node) error {
		key := join(section, name.Value)
		row, known := f.rows[key]
		isSection := section == "" && f.sections[name.Value]
		null := value.ShortTag() == "!!null" // all its lines are comments
		switch {
		case strings.Contains(name.Value, ".") || !known && !isSection:
			return locatedError{fmt.Errorf("line %d: unknown key %s", name.Line, key)}
		case null && (isSection || row.readSection != nil && !row.bare):
			return nil
		case isSection:
			return f.read(value, key)
		}
		v, err := row.read(value)
		f.values[key] = v
		return err
	})
}

// read converts a value in the file to the type of the field. The error contains the value only if
// a number, a duration or a bool is expected.
func (r *row) read(node *yaml.Node) (any, error) {
	tag := node.ShortTag()
	switch kind := r.Type.Kind(); {
	case r.readSection != nil:
		return r.readSection(node)
	case tag == "!!null":
		return nil, errors.New("there is no value; remove the line for the default")
	case kind == reflect.Slice:
		return r.readList(node)
	case node.Kind != yaml.ScalarNode:
		return nil, errors.New("want one value, not a list or a section")
	case kind == reflect.String && tag != "!!str" && !(r.Number && tag == "!!int"):
		return nil, errors.New("want text; put what looks like a number in quotes")
	case kind == reflect.Bool && tag != "!!bool":
		return nil, errors.New("want true or false")
	case kind == reflect.Int || kind == reflect.Int64 && r.Type != reflect.TypeFor[time.Duration]():
		if tag != "!!int" {
			return nil, fmt.Errorf("want a whole number, got %q", node.Value)
		}
	}
	return r.Parse(node.Value)
}

func (r *row) readList(node *yaml.Node) (list []string, err error) {
	if node.Kind != yaml.SequenceNode {
		return nil, errors.New("want a list, like [a, b]")
	}
	for _, item := range node.Content {
		if item.ShortTag() != "!!str" {
			return nil, errors.New("want a list of texts; put what looks like a number in quotes")
		}
		list = append(list, resolved(item).Value)
	}
	return list, r.CheckChoices(list...)
}

// withoutPath removes the path from an error, since the caller adds it.
func withoutPath(err error) error {
	if pathError, ok := errors.AsType[*fs.PathError](err); ok {
		return pathError.Err
	}
	return err
}
