package spec_test

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"switchboard/broker/api/spec"
)

// word is a parameter or a member of a body, of the data of a method, or of an answer.
type word struct {
	name   string
	schema object
	former bool // deprecated
}

// kitCall is a call or a method of the kit. See "One word for one thing" in docs/kit.md.
type kitCall struct {
	name    string // such as createRoom or room.create
	verb    string // of the call, such as PUT, or of the method, such as patch
	path    string // "" for a method
	takes   []word // parameters, and members of the body
	answers []word // members of the answer
	repeat  any    // x-repeat
}

// kitCalls returns the calls and the methods of the kit.
func kitCalls(t *testing.T, d *document) (list []kitCall) {
	for id, o := range operations(t, d) {
		if !strings.HasPrefix(o.setting, "kit.") {
			continue
		}
		c := kitCall{name: id, verb: o.method, path: o.path, repeat: o.node["x-repeat"], takes: d.words(o.body(d))}
		for _, p := range o.parameters(d) {
			parameter := d.object(p)
			c.takes = append(c.takes, word{parameter["name"].(string), parameter, parameter["deprecated"] == true})
		}
		if ok := o.response(d, http.StatusOK); ok != "" {
			c.answers = d.words(ok.at("content", "application/json", "schema"))
		}
		list = append(list, c)
	}
	for name := range d.object("/x-methods") {
		_, verb, _ := strings.Cut(name, ".")
		list = append(list, kitCall{
			name: name, verb: verb, takes: d.words(method(name).at("data")), answers: d.words(method(name).at("reply")),
		})
	}
	return list
}

// words returns the members of an object with the schema, in any of its alternatives.
func (d *document) words(p pointer) (list []word) {
	if d.get(p) == nil {
		return nil
	}
	p = d.follow(p)
	schema := d.object(p)
	members, _ := schema["properties"].(object)
	for name := range members {
		if member, ok := d.get(d.follow(p.at("properties", name))).(object); ok {
			list = append(list, word{name, member, member["deprecated"] == true})
		}
	}
	for _, kind := range []string{"allOf", "oneOf", "anyOf"} {
		all, _ := schema[kind].([]any)
		for i := range all {
			list = append(list, d.words(p.at(kind, strconv.Itoa(i)))...)
		}
	}
	return list
}

// has reports whether one of the words has the name, and is not a former name.
func has(list []word, name string) bool {
	return slices.ContainsFunc(list, func(w word) bool { return w.name == name && !w.former })
}

// TestWords finds calls and methods of the kit that have another word for the same thing.
func TestWords(t *testing.T) {
	d := parse(t, spec.OpenAPI(), false)
	for _, c := range kitCalls(t, d) {
		for _, rule := range []func(kitCall) string{brokenKey, brokenTime, brokenPage, brokenRemoval} {
			if problem := rule(c); problem != "" {
				t.Errorf("%s: %s", c.name, problem)
			}
		}
	}
}

// objects are the calls and methods whose id is that of an object that exists.
var objects = []string{"hold.renew", "hold.confirm", "hold.release", "hold.get"}

// brokenKey checks the idempotency key: a call that creates something has it beside the id.
func brokenKey(c kitCall) string {
	with, _ := c.repeat.(object)
	names, _ := with["with"].([]any)
	switch {
	case has(c.takes, "operation"):
		return "operation is the former name of key"
	case len(names) > 0 && !slices.Contains(names, any("key")):
		return "x-repeat: a call that counts once has a key"
	case strings.Contains(c.path, "{id}") || slices.Contains(objects, c.name):
		return ""
	case has(c.takes, "id") && !has(c.takes, "key"):
		return "a call that takes the id of a new object has a key, too"
	}
	return ""
}

// seconds are the durations in seconds: RFC 6749 has their names.
var seconds = []string{"expires_in", "renewal_expires_in"}

// brokenTime checks durations: they are in milliseconds, and their names end with _ms.
func brokenTime(c kitCall) string {
	for _, w := range slices.Concat(c.takes, c.answers) {
		text, _ := w.schema["description"].(string)
		text = strings.ToLower(text)
		switch {
		case w.former || slices.Contains(seconds, w.name):
		case w.name == "ttl", strings.Contains(text, "seconds") && !strings.Contains(text, "milliseconds") && !strings.Contains(text, "seconds old"):
			return w.name + ": durations are in milliseconds, and their names end with _ms"
		case strings.HasPrefix(text, "how long") && !strings.HasSuffix(w.name, "_ms"):
			return w.name + ": the name of a duration ends with _ms"
		}
	}
	return ""
}

// windows are the calls whose limit is the size of a window. They have no pages.
var windows = []string{"getNeighbors", "board.around"}

// byBytes are the calls whose pages end at a number of bytes. They have a cursor and no limit.
var byBytes = []string{"scene.get"}

// brokenPage checks lists: limit and cursor select a page, and its cursor selects the next one.
func brokenPage(c kitCall) string {
	switch {
	case slices.Contains(windows, c.name):
		return ""
	case slices.Contains(byBytes, c.name):
		if has(c.takes, "limit") || !has(c.takes, "cursor") || !has(c.answers, "cursor") {
			return "a page that ends at its bytes has a cursor, and no limit"
		}
		return ""
	case has(c.takes, "limit") != has(c.takes, "cursor"):
		return "limit and cursor belong together"
	case has(c.takes, "cursor") && !has(c.answers, "cursor"):
		return "the answer has no cursor"
	case has(c.answers, "next"):
		return "next is the former name of cursor"
	case has(c.takes, "offset") && !has(c.takes, "cursor"):
		return "offset is only there beside cursor"
	}
	return ""
}

// brokenRemoval checks DELETE: a repeated call is a success, and changes nothing.
func brokenRemoval(c kitCall) string {
	conditional, _ := c.repeat.(object)
	if c.verb == http.MethodDelete && c.repeat != "always" && conditional["unless"] == nil {
		return "a repeated DELETE is a success, so x-repeat is always, or unless If-Match"
	}
	return ""
}

// TestDocumentVersions finds documents of the kit that can be changed without their version: GET
// answers the version, and PUT, PATCH and DELETE of the same path take If-Match. In methods, it is
// the member version.
func TestDocumentVersions(t *testing.T) {
	d := parse(t, spec.OpenAPI(), false)
	calls := kitCalls(t, d)
	versioned := map[string]bool{} // by path
	for _, c := range calls {
		versioned[c.path] = versioned[c.path] || c.verb == http.MethodGet && has(c.answers, "version")
	}
	for _, c := range calls {
		switch c.verb {
		case http.MethodPatch, http.MethodPut, http.MethodDelete:
			switch {
			case c.verb == http.MethodPatch && !versioned[c.path]:
				t.Errorf("%s: GET %s does not answer the version", c.name, c.path)
			case versioned[c.path] && !has(c.takes, "If-Match"):
				t.Errorf("%s: there is no If-Match", c.name)
			case versioned[c.path] && has(c.takes, "If-None-Match") != (c.verb == http.MethodPut):
				t.Errorf("%s: If-None-Match is for PUT", c.name)
			}
		case "patch", "delete":
			if !has(c.takes, "version") || !has(c.answers, "version") {
				t.Errorf("%s: there is no version", c.name)
			}
		}
	}
}
