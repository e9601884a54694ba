package apigen

import (
	"fmt"
	"net/http"
)

// repeatRule is the row of an operation that may be made again after its answer was lost.
type repeatRule struct {
	method, path string // with * for the parameters of the path
	with, unless []string
}

// repeats returns a row for each operation with an API key that may be made again, besides those
// with GET.
func (d *document) repeats() (rules []repeatRule, err error) {
	for _, o := range d.operations {
		n := o.at("x-repeat")
		if o.method == http.MethodGet || !o.keyed() || n.text() == "never" {
			continue
		}
		r := repeatRule{o.method, o.pattern("*"), n.at("with").texts(), n.at("unless").texts()}
		if n.text() != "always" && len(r.with)+len(r.unless) == 0 {
			return nil, fmt.Errorf("%s: x-repeat is %q", o.id, n.text())
		}
		rules = append(rules, r)
	}
	return rules, nil
}

// keyed reports whether the operation needs an API key.
func (o *operation) keyed() bool {
	for _, s := range o.at("security").items() {
		if !s.at("apiKey").none() {
			return true
		}
	}
	return false
}

// repeatsGo returns the table in Go.
func (d *document) repeatsGo() (string, error) {
	rules, err := d.repeats()
	out := `// repeats are the calls that may be made again after their answer was lost, besides those with GET.
var repeats = []repeatRule{
`
	for _, r := range rules {
		out += fmt.Sprintf("{%q, %q, %s, %s},\n", r.method, r.path, goList(r.with), goList(r.unless))
	}
	return out + "}\n", err
}

func goList(list []string) string {
	if len(list) == 0 {
		return "nil"
	}
	return "[]string{" + quotedList(list) + "}"
}

// repeatsTS returns the table in TypeScript.
func (d *document) repeatsTS() (string, error) {
	rules, err := d.repeats()
	out := `/**
 * The calls that may be made again after their answer was lost, besides those with GET: method,
 * path, members of which the body must have one, and conditions of which it must have none.
 */
export const repeats: readonly (readonly [string, string, readonly string[], readonly string[]])[] = [
`
	for _, r := range rules {
		out += fmt.Sprintf("[%q, %q, [%s], [%s]],\n", r.method, r.path, quotedList(r.with), quotedList(r.unless))
	}
	return out + "];\n", err
}
