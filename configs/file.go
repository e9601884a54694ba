package configs

import (
	"errors"
	"fmt"
	"io/fs"
	"reflect"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	yamlv3 "go.yaml.in/yaml/v3"
)

// strict is a YAML parser that knows the settings: it refuses other keys and values of a
// wrong type before anything converts them.
type strict struct {
	*yaml.YAML
	settings map[string]*setting
	sections map[string]bool
}

func strictYAML(settings []*setting) strict {
	s := strict{yaml.Parser(), map[string]*setting{}, map[string]bool{}}
	for _, setting := range settings {
		s.settings[setting.key] = setting
		if section, _, nested := strings.Cut(setting.key, "."); nested {
			s.sections[section] = true
		}
	}
	return s
}

// Unmarshal implements koanf.Parser.
func (s strict) Unmarshal(text []byte) (map[string]any, error) {
	var document yamlv3.Node
	if err := yamlv3.Unmarshal(text, &document); err != nil {
		return nil, syntaxError(err)
	}
	if len(document.Content) == 0 {
		return nil, nil // only comments
	}
	if err := s.check(document.Content[0], ""); err != nil {
		return nil, err
	}
	values, err := s.YAML.Unmarshal(text)
	if err != nil {
		return nil, syntaxError(err)
	}
	return values, s.documents(document.Content[0], values)
}

// syntaxError is one line. Where YAML's words hold a piece of the file (the name of an
// anchor, which is how it reads a password that begins with *) they are left out.
func syntaxError(err error) error {
	if strings.Contains(err.Error(), "anchor") {
		return errors.New("a value that begins with * or & needs quotes")
	}
	return errors.New(strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " "))
}

// check walks a mapping; section is "" or ends with a dot.
func (s strict) check(node *yamlv3.Node, section string) error {
	if node.Kind != yamlv3.MappingNode {
		return at(node, strings.TrimSuffix(section, "."), "want settings as key: value")
	}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name, value := node.Content[i], node.Content[i+1]
		if value.Kind == yamlv3.AliasNode {
			value = value.Alias
		}
		key := section + name.Value
		setting, known := s.settings[key]
		isSection := section == "" && s.sections[name.Value]
		switch {
		case strings.Contains(name.Value, ".") || !known && !isSection:
			return fmt.Errorf("line %d: unknown key %s", name.Line, key)
		case known && setting.document != nil && value.ShortTag() == "!!null": // likewise
		case known && setting.document != nil:
			if err := setting.document(value); err != nil {
				return err
			}
		case isSection && value.ShortTag() == "!!null": // all of it is commented out
		case isSection:
			if err := s.check(value, key+"."); err != nil {
				return err
			}
		default:
			if err := setting.checkNode(value); err != nil {
				return at(name, key, err.Error())
			}
		}
	}
	return nil
}

// placed is an error that says where in the file it is.
type placed struct{ error }

func at(node *yamlv3.Node, key, problem string) error {
	if key == "" {
		return placed{fmt.Errorf("line %d: %s", node.Line, problem)}
	}
	return placed{fmt.Errorf("line %d: %s: %s", node.Line, key, problem)}
}

// checkNode says what is wrong with a value; it repeats the value only where it was to be
// a number, a duration or a yes or no.
func (s *setting) checkNode(node *yamlv3.Node) error {
	tag := node.ShortTag()
	switch kind := s.typ.Kind(); {
	case tag == "!!null":
		return errors.New("there is no value; leave the line out for the default")
	case kind == reflect.Slice:
		if node.Kind != yamlv3.SequenceNode {
			return errors.New("want a list, like [a, b]")
		}
		for _, item := range node.Content {
			if item.ShortTag() != "!!str" {
				return errors.New("want a list of texts; put what looks like a number in quotes")
			}
			if err := s.chosen(item.Value); err != nil {
				return err
			}
		}
		return nil
	case node.Kind != yamlv3.ScalarNode:
		return errors.New("want one value, not a list or a section")
	case kind == reflect.String && tag != "!!str" && !(s.number && tag == "!!int"):
		return errors.New("want text; put what looks like a number in quotes")
	case kind == reflect.Bool && tag != "!!bool":
		return errors.New("want true or false")
	case kind == reflect.Int || kind == reflect.Int64 && s.typ != durationType:
		if tag != "!!int" {
			return fmt.Errorf("want a whole number, got %q", node.Value)
		}
	}
	_, err := s.parse(node.Value)
	return err
}

// withoutPath is err without the name of the file, which the caller puts in front.
func withoutPath(err error) error {
	if wrong, ok := errors.AsType[*fs.PathError](err); ok {
		return wrong.Err
	}
	return err
}
