package apicheck

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// Answers returns answers that a server can give to a call, one for each kind that the document has
// for its operation. An answer has all members, and nearly all values differ.
func Answers(method, path string) ([]json.RawMessage, error) {
	d, err := read()
	if err != nil {
		return nil, err
	}
	o := d.find(method, path)
	if o == nil || o.answer == nil {
		return []json.RawMessage{json.RawMessage("{}")}, nil
	}
	schemas := []any{o.answer}
	if list, found := d.resolve(o.answer)["oneOf"].([]any); found {
		schemas = list
	}
	answers := make([]json.RawMessage, len(schemas))
	for i, schema := range schemas {
		s := sampler{document: d}
		if answers[i], err = json.Marshal(s.value(schema.(object))); err != nil {
			return nil, err
		}
	}
	return answers, nil
}

// sampler makes values.
type sampler struct {
	*document
	n int // of values that were made
}

// value returns a value that fits a schema.
func (s *sampler) value(schema object) any {
	schema = s.resolve(schema)
	if only, found := schema["const"]; found {
		return only
	}
	if list, found := schema["enum"].([]any); found {
		return list[0]
	}
	for _, kind := range alternatives {
		if list, found := schema[kind].([]any); found && schema["properties"] == nil {
			return s.value(list[0].(object))
		}
	}
	s.n++
	switch typeOf(schema) {
	case "string":
		return "text-" + strconv.Itoa(s.n)
	case "integer", "number":
		return s.n
	case "boolean":
		return true
	case "array":
		return s.list(schema)
	case "object":
		return s.object(schema)
	}
	return object{"any": s.n}
}

// typeOf returns the type of the values of a schema, without null.
func typeOf(schema object) string {
	if list, found := schema["type"].([]any); found {
		return list[0].(string)
	}
	typ, _ := schema["type"].(string)
	return typ
}

func (s *sampler) list(schema object) any {
	if prefix, found := schema["prefixItems"].([]any); found {
		list := make([]any, len(prefix))
		for i, item := range prefix {
			if one, ok := item.(object); ok {
				list[i] = s.value(one)
			} else { // true: any JSON
				list[i] = object{"any": i}
			}
		}
		return list
	}
	items, _ := schema["items"].(object)
	return []any{s.value(items)}
}

func (s *sampler) object(schema object) any {
	members := s.members(schema)
	o := object{}
	for _, name := range slices.Sorted(maps.Keys(members)) {
		o[name] = s.value(members[name])
	}
	if len(members) > 0 {
		return o
	}
	if any, found := schema["additionalProperties"].(object); found {
		return object{"name": s.value(any)}
	}
	if schema["maxProperties"] != nil { // no members
		return o
	}
	return object{"any": s.n}
}

// CompareAnswer returns what is wrong with what a method has returned for an answer: it must be the
// answer, or its only member. dropped are the paths of members that the method does not return,
// such as list/id.
func CompareAnswer(by string, answer, returned json.RawMessage, dropped []string) []string {
	var want, got any
	if err := json.Unmarshal(answer, &want); err != nil {
		return []string{fmt.Sprintf("%s: %v", by, err)}
	}
	if err := json.Unmarshal(returned, &got); err != nil {
		return []string{fmt.Sprintf("%s: %v", by, err)}
	}
	for _, path := range dropped {
		if !drop(want, strings.Split(path, "/")) {
			return []string{fmt.Sprintf("%s: the answer has no member %s", by, path)}
		}
	}
	whole, isObject := want.(object)
	problems := differences(by, "", want, got)
	if len(problems) == 0 || !isObject || len(whole) > 1 {
		return problems
	}
	for _, only := range whole { // the method returns the only member
		return differences(by, "", only, got)
	}
	if got == nil { // the method returns nothing of an empty answer
		return nil
	}
	return problems
}

// drop removes the member at a path, in all items of lists. It reports whether there was one.
func drop(v any, path []string) (found bool) {
	switch v := v.(type) {
	case object:
		if _, found = v[path[0]]; found && len(path) > 1 {
			return drop(v[path[0]], path[1:])
		}
		delete(v, path[0])
	case []any:
		for _, item := range v {
			found = drop(item, path)
		}
	}
	return found
}

// differences returns the paths at which two values differ.
func differences(by, at string, want, got any) (list []string) {
	a, isA := want.(object)
	b, isB := got.(object)
	switch {
	case isA && isB:
		names := maps.Clone(a)
		maps.Copy(names, b)
		for _, name := range slices.Sorted(maps.Keys(names)) {
			_, inWant := a[name]
			_, inGot := b[name]
			path := strings.TrimPrefix(at+"/"+name, "/")
			switch {
			case !inGot:
				list = append(list, fmt.Sprintf("%s: the result lacks %s of the answer", by, path))
			case !inWant:
				list = append(list, fmt.Sprintf("%s: the result has %s, which the answer does not have", by, path))
			default:
				list = append(list, differences(by, path, a[name], b[name])...)
			}
		}
		return list
	case isList(want) && isList(got) && len(want.([]any)) == len(got.([]any)):
		for i, item := range want.([]any) {
			list = append(list, differences(by, at+"/"+strconv.Itoa(i), item, got.([]any)[i])...)
		}
		return list
	case !reflect.DeepEqual(want, got):
		return []string{fmt.Sprintf("%s: at %q the answer is %v, the result %v", by, at, want, got)}
	}
	return nil
}

func isList(v any) bool {
	_, ok := v.([]any)
	return ok
}
