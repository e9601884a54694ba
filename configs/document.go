package configs

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	yamlv3 "go.yaml.in/yaml/v3"
)

// Document is a setting that is a section of names of the operator's own: a piece of YAML. It stays
// text until it is needed, since the loader would cut its names at their dots.
type Document string

// node is the content of d, or nil when it is empty.
func (d Document) node() (*yamlv3.Node, error) {
	var document yamlv3.Node
	if err := yamlv3.Unmarshal([]byte(d), &document); err != nil {
		return nil, syntaxError(err)
	}
	if len(document.Content) == 0 {
		return nil, nil
	}
	return document.Content[0], nil
}

// documents turns the settings that are documents into text. values is what the parser made of root.
func (s strict) documents(root *yamlv3.Node, values map[string]any) error {
	for key, setting := range s.settings {
		if setting.document == nil {
			continue
		}
		node, into := root, values
		path := strings.Split(key, ".")
		for i, name := range path {
			if node = child(node, name); node == nil || node.ShortTag() == "!!null" {
				break
			}
			if i < len(path)-1 {
				into, _ = into[name].(map[string]any)
				continue
			}
			text, err := yamlv3.Marshal(node)
			if err != nil {
				return at(node, key, "it cannot be read")
			}
			into[name] = string(text)
		}
	}
	return nil
}

// child is the value of a name in a mapping, or nil.
func child(node *yamlv3.Node, name string) *yamlv3.Node {
	for i := 0; i+1 < len(node.Content); i += 2 {
		if node.Content[i].Value == name {
			return resolved(node.Content[i+1])
		}
	}
	return nil
}

func resolved(node *yamlv3.Node) *yamlv3.Node {
	if node.Kind == yamlv3.AliasNode {
		return node.Alias
	}
	return node
}

// each calls f for every entry of a mapping. An error that does not say where it is gets the line and the key.
func each(node *yamlv3.Node, key string, f func(name string, value *yamlv3.Node) error) error {
	if node.Kind != yamlv3.MappingNode {
		return at(node, key, "want settings as key: value")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := node.Content[i]
		where := key + "." + name.Value
		if seen[name.Value] {
			return at(name, where, "it is there twice")
		}
		seen[name.Value] = true
		err := f(name.Value, resolved(node.Content[i+1]))
		if _, placed := errors.AsType[placed](err); err != nil && !placed {
			err = at(name, where, err.Error())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// unknownKey is the error of each's f for a name that means nothing.
func unknownKey(known ...string) error { return errors.New("unknown key; want " + orList(known)) }

func text(node *yamlv3.Node) (string, error) {
	if node.Kind != yamlv3.ScalarNode || node.ShortTag() != "!!str" {
		return "", errors.New("want text; put what looks like a number in quotes")
	}
	return node.Value, nil
}

// listOrText is one text, or several in a list.
func listOrText(node *yamlv3.Node) (list []string, err error) {
	if node.Kind != yamlv3.SequenceNode {
		one, err := text(node)
		return []string{one}, err
	}
	for _, item := range node.Content {
		one, err := text(resolved(item))
		if err != nil {
			return nil, err
		}
		list = append(list, one)
	}
	return list, nil
}

func positive(node *yamlv3.Node) (float64, error) {
	v, err := strconv.ParseFloat(node.Value, 64)
	if tag := node.ShortTag(); err != nil || v <= 0 || !slices.Contains([]string{"!!int", "!!float"}, tag) {
		return 0, errors.New("want a number above zero")
	}
	return v, nil
}

func whole(node *yamlv3.Node) (int, error) {
	v, err := strconv.Atoi(node.Value)
	if err != nil || v < 1 || node.ShortTag() != "!!int" {
		return 0, errors.New("want a whole number above zero")
	}
	return v, nil
}

func duration(node *yamlv3.Node) (time.Duration, error) {
	d, err := time.ParseDuration(node.Value)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("want a duration like 2s or 30m, got %.20q", node.Value)
	}
	return d, nil
}
