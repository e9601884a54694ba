package apicheck

import (
	"fmt"
	"net/http"
	"strings"
)

// RepeatTableGo returns client/backend/repeats.go: which calls may be made again after their answer
// was lost, from x-repeat of the document.
func RepeatTableGo() (string, error) {
	rules, err := repeatRules()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString(`package backend

// repeats are the calls that may be made again after their answer was lost, besides those with GET.
// They come from x-repeat of the OpenAPI document: see package apicheck.
var repeats = []repeatRule{
`)
	for _, r := range rules {
		fmt.Fprintf(&out, "\t{%q, %q, %s, %s},\n", r.method, r.path, goList(r.with), goList(r.unless))
	}
	out.WriteString("}\n")
	return out.String(), nil
}

func goList(list []string) string {
	if len(list) == 0 {
		return "nil"
	}
	return fmt.Sprintf("[]string{%s}", quoted(list))
}

// RepeatTableTypeScript returns client/js/src/server/repeats.ts, the same table.
func RepeatTableTypeScript() (string, error) {
	rules, err := repeatRules()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	out.WriteString(`/**
 * The calls that may be made again after their answer was lost, besides those with GET: method,
 * path, members of which the body must have one, and conditions of which it must have none. They
 * come from x-repeat of the OpenAPI document: see internal/apicheck.
 */
export const repeats: readonly (readonly [string, string, readonly string[], readonly string[]])[] = [
`)
	for _, r := range rules {
		fmt.Fprintf(&out, "  [%q, %q, [%s], [%s]],\n", r.method, r.path, quoted(r.with), quoted(r.unless))
	}
	out.WriteString("];\n")
	return out.String(), nil
}

func quoted(list []string) string {
	texts := make([]string, len(list))
	for i, text := range list {
		texts[i] = fmt.Sprintf("%q", text)
	}
	return strings.Join(texts, ", ")
}

// repeatRule is the row of an operation.
type repeatRule struct {
	method, path string // with * for the parameters of the path
	with, unless []string
}

// repeatRules returns a row for each operation that may be made again.
func repeatRules() (rules []repeatRule, err error) {
	d, err := read()
	if err != nil {
		return nil, err
	}
	for _, o := range d.operations {
		segments := make([]string, len(o.path))
		for i, s := range o.path {
			if segments[i] = s; s == "" && i > 0 {
				segments[i] = "*"
			}
		}
		r := repeatRule{method: o.method, path: strings.Join(segments, "/")}
		rule, conditional := o.repeat.(object)
		switch {
		case o.method == http.MethodGet || !o.keyed || o.repeat == "never":
			continue
		case conditional:
			r.with, r.unless = texts(rule["with"]), texts(rule["unless"])
		case o.repeat != "always":
			return nil, fmt.Errorf("%s: x-repeat is %v", o.id, o.repeat)
		}
		rules = append(rules, r)
	}
	return rules, nil
}

func texts(list any) (out []string) {
	all, _ := list.([]any)
	for _, one := range all {
		out = append(out, one.(string))
	}
	return out
}
