package configs

import (
	"reflect"
	"strings"

	"go.yaml.in/yaml/v3"

	"switchboard/broker/namespace"
	"switchboard/internal/setting"
)

// row is a setting in the help.
type row struct {
	*setting.Setting
	group string
	text  string
	// readSection reads a section whose names the operator chooses. Nil means a plain value.
	readSection func(*yaml.Node) (any, error)
	// bare permits the key of a section without a value: it has the defaults then. Without bare, it
	// is as if the key were missing.
	bare bool
}

func newRow(s *setting.Setting, group string) *row {
	r := &row{Setting: s, group: group, text: s.Help}
	switch {
	case s.Type == reflect.TypeFor[*namespace.Set]():
		r.readSection = func(node *yaml.Node) (any, error) { return namespaces(node) }
	case s.Type == reflect.TypeFor[[]tokenKey]():
		r.readSection = func(node *yaml.Node) (any, error) { return tokenKeys(node) }
	case s.Type.Kind() == reflect.Pointer:
		r.bare, r.text = true, sectionText(s.Help, s.Type.Elem())
		r.readSection = func(node *yaml.Node) (any, error) {
			v := reflect.New(s.Type.Elem())
			return v.Interface(), readInto(node, s.Key, v.Elem())
		}
	}
	if !strings.Contains(r.text, "\n") {
		r.text = wrap(r.text, " ")
	}
	return r
}

// parse converts the text of a flag or of a variable to a value for Set. The error never contains a
// text that may be a secret.
func (r *row) parse(text string) (any, error) {
	if r.readSection == nil {
		return r.Parse(text)
	}
	node, err := parseYAML([]byte(text))
	if err != nil || node == nil {
		return nil, err
	}
	return r.readSection(node)
}
