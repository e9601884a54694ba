package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"switchboard/client/backend"
	"switchboard/cmd/internal/screen"
)

// payload returns a text as JSON: JSON as it is, and other text as a string. asText makes a string
// of JSON, too.
func payload(text string, asText bool) (json.RawMessage, error) {
	trimmed := strings.TrimSpace(text)
	if !asText && json.Valid([]byte(trimmed)) {
		return json.RawMessage(trimmed), nil
	}
	if !asText && (strings.HasPrefix(trimmed, "{") || strings.HasPrefix(trimmed, "[")) {
		return nil, usage("the data looks like JSON and is not: %w; --text sends it as text", syntaxError(trimmed))
	}
	return json.Marshal(strings.TrimSuffix(text, "\n"))
}

func syntaxError(text string) error {
	var v any
	err := json.Unmarshal([]byte(text), &v)
	if wrong, ok := err.(*json.SyntaxError); ok {
		return fmt.Errorf("%w at byte %d", err, wrong.Offset)
	}
	return err
}

// data reads data from an argument, from a file, or from the standard input if the argument is "-"
// or missing and the standard input is not a terminal. ok is false if there is none.
func (a *app) data(argument *string, file string, asText bool) (data json.RawMessage, ok bool, err error) {
	var text []byte
	switch {
	case file != "" && argument != nil:
		return nil, false, usage("--file and data: only one of them")
	case file != "":
		if text, err = os.ReadFile(file); err != nil {
			return nil, false, err
		}
	case argument != nil && *argument != "-":
		text = []byte(*argument)
	case argument == nil && screen.IsTerminal(a.stdin):
		return nil, false, nil
	default:
		if text, err = io.ReadAll(a.stdin); err != nil {
			return nil, false, err
		}
		if argument == nil && len(bytes.TrimSpace(text)) == 0 { // for example /dev/null
			return nil, false, nil
		}
	}
	data, err = payload(string(text), asText)
	return data, err == nil, err
}

// change has the flags of a change of fields.
type change struct {
	set, del, add, touch, conditions []string
	text                             bool
}

// apply sets the change in p.
func (c change) apply(p *backend.Push) error {
	p.Del, p.Touch = c.del, c.touch
	asValue := func(text string) (any, error) { return payload(text, c.text) }
	for _, flag := range []struct {
		name  string
		pairs []string
		to    *map[string]any
		parse func(text string) (any, error)
	}{{"--set", c.set, &p.Set, asValue}, {"--add", c.add, &p.Add, additionOf}, {"--if", c.conditions, &p.If, conditionOf}} {
		for _, pair := range flag.pairs {
			field, text, err := pairOf(flag.name, pair)
			if err != nil {
				return err
			}
			value, err := flag.parse(text)
			if err != nil {
				return err
			}
			put(flag.to, field, value)
		}
	}
	return nil
}

func put(m *map[string]any, name string, value any) {
	if *m == nil {
		*m = map[string]any{}
	}
	(*m)[name] = value
}

func pairOf(flag, pair string) (name, value string, err error) {
	name, value, found := strings.Cut(pair, "=")
	if !found || name == "" {
		return "", "", usage("%s: want FIELD=VALUE, got %q", flag, pair)
	}
	return name, value, nil
}

// additionOf parses N, or N:MIN:MAX where MIN and MAX may be empty.
func additionOf(text string) (any, error) {
	parts := strings.Split(text, ":")
	numbers := make([]*int64, 3)
	for i, part := range parts {
		n, err := strconv.ParseInt(part, 10, 64)
		switch {
		case i > 2 || err != nil && (i == 0 || part != ""):
			return nil, usage("--add: want a whole number, or N:MIN:MAX, got %q", text)
		case err == nil:
			numbers[i] = &n
		}
	}
	if len(parts) == 1 {
		return *numbers[0], nil
	}
	return backend.Addition{By: *numbers[0], Min: numbers[1], Max: numbers[2]}, nil
}

// conditionOf parses an id, "absent" or "exists".
func conditionOf(text string) (any, error) {
	switch text {
	case "absent":
		return 0, nil
	case "exists":
		return true, nil
	}
	id, err := strconv.ParseInt(text, 10, 64)
	if err != nil || id < 0 {
		return nil, usage("--if: want the id of a field, absent or exists, got %q", text)
	}
	return id, nil
}
