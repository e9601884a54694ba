package apigen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// samplesHead begins the module with the arguments of the methods.
const samplesHead = notice + `import type { Kit } from "../src/server/index.js";
import type { Calls } from "./operations.test.js";

/** The calls of each method of Kit: with everything that can be sent, and with as little as possible. */
export const kit: Calls<Kit> = {
`

// samples returns the module of a test with arguments for all methods of the class Kit.
func (t *tsTypes) samples(methods []*tsMethod) string {
	out := samplesHead
	for _, m := range methods {
		out += m.name + ": [" + strings.Join(m.samples(), ", ") + "],\n"
	}
	return out + "};\n"
}

// samples returns lists of arguments: one with all that the method can send, others for each
// operation, form of the time and condition, and one with as little as possible.
func (m *tsMethod) samples() (lists []string) {
	o := m.operations[0]
	conditions := []string{"{ ifMatch: 1 }"}
	if _, found := o.parameter("If-None-Match"); found {
		conditions = append(conditions, `{ ifNoneMatch: "*" }`)
	}
	add := func(of func(a argument) string) {
		var list []string
		for _, name := range o.names() {
			list = append(list, strconv.Quote(name))
		}
		for _, a := range m.arguments {
			list = append(list, of(a))
		}
		for len(list) > 0 && list[len(list)-1] == "undefined" {
			list = list[:len(list)-1]
		}
		if text := "[" + strings.Join(list, ", ") + "]"; !slices.Contains(lists, text) {
			lists = append(lists, text)
		}
	}
	for _, one := range m.operations {
		operation := strconv.Quote(one.last())
		for _, all := range []bool{true, false} {
			add(func(a argument) string {
				if a.kind == "operation" {
					return operation
				}
				return m.sample(one, a, all, "{ ttl_ms: 60_000 }", "undefined")
			})
		}
	}
	for _, time := range []string{"{ ttl_ms: 60_000 }", "60"} {
		add(func(a argument) string { return m.sample(o, a, false, time, "undefined") })
	}
	for _, condition := range conditions {
		add(func(a argument) string { return m.sample(o, a, false, "undefined", condition) })
	}
	return lists
}

// sample returns a value for an argument of an operation: with all that can be sent, or with as
// little as possible.
func (m *tsMethod) sample(o *operation, a argument, all bool, time, condition string) string {
	var members []member
	switch a.kind {
	case "operation":
		return strconv.Quote(m.operations[0].last())
	case "condition":
		return condition
	case "time":
		return time
	case "query":
		members = o.query()
	case "body":
		if o.body.none() { // another operation of the method has one
			return "undefined"
		}
		if typ, _ := o.body.typeOf(); typ != "object" {
			return sampleTS(o.body, all)
		}
		members = o.body.properties()
	default:
		found, _ := o.sent(a.kind) // another operation of the method may have it
		if !all && !found.required && !a.always {
			return "undefined"
		}
		return sampleTS(found.schema, all)
	}
	members = slices.DeleteFunc(members, func(p member) bool { return a.typ == "-"+p.name })
	text := sampleMembers(members, all)
	if text == "{}" && (a.many || a.kind == "query") {
		return "undefined"
	}
	return text
}

// sampleMembers returns an object with all members, or with those that are required.
func sampleMembers(members []member, all bool) string {
	var list []string
	for _, p := range members {
		if !p.former && (all || p.required) {
			list = append(list, p.name+": "+sampleTS(p.schema, all))
		}
	}
	if len(list) == 0 {
		return "{}"
	}
	return "{ " + strings.Join(list, ", ") + " }"
}

// sampleTS returns a value of a schema.
func sampleTS(schema node, all bool) string {
	schema, _ = schema.orNull()
	schema = schema.value()
	typ, _ := schema.typeOf()
	own := schema.at("x-ts-type").text()
	switch list := schema.at("enum").texts(); {
	case own != "" && own != "string":
		return own
	case len(list) > 0:
		return strconv.Quote(list[0])
	case typ == "string":
		return `"x"`
	case typ == "integer" || typ == "number":
		return "1"
	case typ == "boolean":
		return "true"
	case typ == "array":
		return fmt.Sprintf("[%s]", sampleTS(schema.at("items"), all))
	case typ == "object" && schema.at("properties").none():
		return "{ x: " + sampleTS(schema.at("additionalProperties"), all) + " }"
	case typ == "object":
		return sampleMembers(schema.properties(), all)
	}
	return "{ x: 1 }"
}
