package configs

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"switchboard/internal/setting"
)

// parseYAML returns the root node of text, nil if there is none.
func parseYAML(text []byte) (*yaml.Node, error) {
	var document yaml.Node
	if err := yaml.Unmarshal(text, &document); err != nil {
		return nil, syntaxError(err)
	}
	if len(document.Content) == 0 { // the text has only comments
		return nil, nil
	}
	return document.Content[0], nil
}

// syntaxError turns an error of the YAML parser into one line. It replaces errors about anchors,
// since those contain text of the file: the parser takes a password that begins with * for an
// anchor.
func syntaxError(err error) error {
	if strings.Contains(err.Error(), "anchor") {
		return errors.New("a value that begins with * or & needs quotes")
	}
	return errors.New(strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " "))
}

// locatedError is an error with its line in the file.
type locatedError struct{ error }

// errorAt returns an error with the line of node, and with key if that is not empty.
func errorAt(node *yaml.Node, key, problem string) error {
	if key == "" {
		return locatedError{fmt.Errorf("line %d: %s", node.Line, problem)}
	}
	return locatedError{fmt.Errorf("line %d: %s: %s", node.Line, key, problem)}
}

// join returns the key of name in a section; "" means no section.
func join(section, name string) string {
	if section == "" {
		return name
	}
	return section + "." + name
}

// resolved returns the node that an alias refers to, and other nodes as they are.
func resolved(node *yaml.Node) *yaml.Node {
	if node.Kind == yaml.AliasNode {
		return node.Alias
	}
	return node
}

// entries calls f for every entry of a mapping. It adds the line and the key to an error without a
// line.
func entries(node *yaml.Node, key string, f func(name, value *yaml.Node) error) error {
	if node.Kind != yaml.MappingNode {
		return errorAt(node, key, "want settings as key: value")
	}
	seen := map[string]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		name := resolved(node.Content[i])
		where := join(key, name.Value)
		if seen[name.Value] {
			return errorAt(name, where, "it is given twice")
		}
		seen[name.Value] = true
		err := f(name, resolved(node.Content[i+1]))
		if _, located := errors.AsType[locatedError](err); err != nil && !located {
			err = errorAt(name, where, err.Error())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// each is like entries, but passes the name of an entry as text.
func each(node *yaml.Node, key string, f func(name string, value *yaml.Node) error) error {
	return entries(node, key, func(name, value *yaml.Node) error { return f(name.Value, value) })
}

// unknownKey returns the error for an unknown name in a mapping.
func unknownKey(known ...string) error {
	return errors.New("unknown key; want " + setting.OrList(known))
}

func text(node *yaml.Node) (string, error) {
	if node.Kind != yaml.ScalarNode || node.ShortTag() != "!!str" {
		return "", errors.New("want text; put what looks like a number in quotes")
	}
	return node.Value, nil
}

// listOrText reads one text or a list of texts.
func listOrText(node *yaml.Node) (list []string, err error) {
	if node.Kind != yaml.SequenceNode {
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

func positive(node *yaml.Node) (float64, error) {
	v, err := strconv.ParseFloat(node.Value, 64)
	if tag := node.ShortTag(); err != nil || v <= 0 || !slices.Contains([]string{"!!int", "!!float"}, tag) {
		return 0, errors.New("want a number above zero")
	}
	return v, nil
}

func boolean(node *yaml.Node) (bool, error) {
	if node.ShortTag() != "!!bool" {
		return false, errors.New("want true or false")
	}
	return strconv.ParseBool(strings.ToLower(node.Value))
}

func whole(node *yaml.Node) (int, error) {
	v, err := strconv.Atoi(node.Value)
	if err != nil || v < 1 || node.ShortTag() != "!!int" {
		return 0, errors.New("want a whole number above zero")
	}
	return v, nil
}

func duration(node *yaml.Node) (time.Duration, error) {
	d, err := time.ParseDuration(node.Value)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("want a duration like 2s or 30m, got %.20q", node.Value)
	}
	return d, nil
}

// durationOr reads a duration, or a word that stands for special.
func durationOr(node *yaml.Node, word string, special time.Duration) (time.Duration, error) {
	if node.Value == word {
		return special, nil
	}
	d, err := duration(node)
	if err != nil {
		return 0, fmt.Errorf("%w; or %s", err, word)
	}
	return d, nil
}
