package spec_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// mutation is a body that differs from a valid one in one place.
type mutation struct {
	kind   string // of change, such as "missing"
	member string // the name that the answer must have, or outer
	outer  string // the member around it; "" for none
	body   string
	absent string // of "null": the body without the member
}

// mutations returns the changes of a valid body: for each member of each object that it is missing,
// null, of another type, there twice, and in capitals; for a limit that it is above all maxima; and
// for each object a member that is not known. free reports whether an object may have any members,
// such as data of the application.
func mutations(body string, free func(body string) bool) (list []mutation) {
	var root any
	d := json.NewDecoder(strings.NewReader(body))
	d.UseNumber()
	if d.Decode(&root) != nil {
		return nil
	}
	for _, at := range places("", root) {
		open := free(encode("", root, at, "unknown"))
		outer, name := lastTwo(at)
		add := func(kind, member, absent string) {
			list = append(list, mutation{kind, member, outer, encode("", root, at, kind), absent})
		}
		if _, err := strconv.Atoi(name); err == nil { // the answer names the list
			add("null", outer, "")
			continue
		}
		add("type", name, "")
		if open {
			continue
		}
		if name == "limit" {
			add("above", name, "")
		}
		absent := encode("", root, at, "missing")
		add("missing", name, "")
		add("null", name, absent)
		add("twice", name, "")
		add("unknown", name+"_zz", "")
		add("capitals", strings.ToUpper(name), "")
	}
	return list
}

// membersOf returns the paths of the members of a body, without the indices of lists.
func membersOf(body string) (list []string) {
	var root any
	_ = json.Unmarshal([]byte(body), &root) // a body that is not JSON has none
	for _, at := range places("", root) {
		names := slices.DeleteFunc(strings.Split(at, "/"), func(name string) bool { _, err := strconv.Atoi(name); return err == nil })
		list = append(list, strings.Join(names, "/"))
	}
	return list
}

// members returns the paths of the members that a schema describes, like membersOf. Those of
// objects with any names are left out.
func (d *document) members(p pointer, at string) (list []string) {
	schema := d.object(p)
	properties, _ := schema["properties"].(object)
	for name := range properties {
		inner := d.follow(p).at("properties", name)
		list = append(append(list, at+"/"+name), d.members(inner, at+"/"+name)...)
	}
	if schema["items"] != nil {
		list = append(list, d.members(d.follow(p).at("items"), at)...)
	}
	return list
}

// lastTwo returns the last two names of a path.
func lastTwo(at string) (outer, name string) {
	names := strings.Split(at, "/")
	return names[len(names)-2], names[len(names)-1]
}

// places returns the paths of all members and items of a value.
func places(at string, v any) (list []string) {
	switch v := v.(type) {
	case object:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			inner := at + "/" + strings.ReplaceAll(name, "/", "~1")
			list = append(append(list, inner), places(inner, v[name])...)
		}
	case []any:
		for i, item := range v {
			inner := fmt.Sprintf("%s/%d", at, i)
			list = append(append(list, inner), places(inner, item)...)
		}
	}
	return list
}

// encode returns a value as JSON, with one change of the member or the item at target.
func encode(at string, v any, target, kind string) string {
	switch v := v.(type) {
	case object:
		var members []string
		for _, name := range slices.Sorted(maps.Keys(v)) {
			inner := at + "/" + strings.ReplaceAll(name, "/", "~1")
			value := encode(inner, v[name], target, kind)
			text := strconv.Quote(name) + ":" + value
			if inner != target {
				members = append(members, text)
				continue
			}
			switch kind {
			case "missing":
			case "null":
				members = append(members, strconv.Quote(name)+":null")
			case "type":
				members = append(members, strconv.Quote(name)+":"+otherType(v[name]))
			case "above":
				members = append(members, strconv.Quote(name)+":100000")
			case "twice":
				members = append(members, text, text)
			case "capitals":
				members = append(members, strconv.Quote(strings.ToUpper(name))+":"+value)
			case "unknown":
				members = append(members, text, strconv.Quote(name+"_zz")+":"+value)
			}
		}
		return "{" + strings.Join(members, ",") + "}"
	case []any:
		items := make([]string, len(v))
		for i, item := range v {
			inner := fmt.Sprintf("%s/%d", at, i)
			if items[i] = encode(inner, item, target, kind); inner == target {
				items[i] = "null"
			}
		}
		return "[" + strings.Join(items, ",") + "]"
	}
	text, _ := json.Marshal(v)
	return string(text)
}

// otherType returns a value of another JSON type.
func otherType(v any) string {
	if _, isText := v.(string); isText {
		return `{"a":[7]}`
	}
	return `"text"`
}
