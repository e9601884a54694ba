package apicheck

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// TypeScript returns a module that has a type error for each difference between the answers of the
// document and the results of methods: members that are missing, or that the document does not
// have, and members that are always there by their type, although answers may lack them. The types
// of the methods come from module, such as Backend["push"] for a call by Backend.push. ignored are
// the methods that return nothing of their answer, or another form of it, and dropped the paths of
// members that methods do not return.
func TypeScript(calls []Call, module string, ignored map[string]bool, dropped map[string][]string) (string, error) {
	d, err := read()
	if err != nil {
		return "", err
	}
	var out strings.Builder
	fmt.Fprintf(&out, typeScriptHead, strconv.Quote(module))
	done := map[string]bool{}
	for i, call := range calls {
		target, err := url.Parse(call.Target)
		if err != nil {
			return "", err
		}
		o := d.find(call.Method, target.Path)
		if o == nil || o.answer == nil || ignored[call.By] || done[call.By] {
			continue
		}
		done[call.By] = true
		schemas := []any{o.answer}
		if list, found := d.resolve(o.answer)["oneOf"].([]any); found { // one of them, or the type has the members of all
			schemas = append(slices.Clone(list), o.answer)
		}
		shapes := make([]string, len(schemas))
		for k, schema := range schemas {
			shapes[k] = d.shape(schema.(object), "", dropped[call.By])
		}
		class, method, _ := strings.Cut(call.By, ".")
		fmt.Fprintf(&out, "export const check%d: never = null as unknown as Differences<[%s], Awaited<ReturnType<%s[%q]>>, %q>;\n",
			i, strings.Join(shapes, ", "), class, method, call.By)
	}
	return out.String(), nil
}

// typeScriptHead are the types that compare. A Differences is a union of paths.
const typeScriptHead = `import type { Backend, Kit } from %s;

type Keys<T> = T extends unknown ? keyof T : never;
type At<T, K> = T extends unknown ? (K extends keyof T ? NonNullable<T[K]> : never) : never;
type Items<T> = T extends readonly (infer I)[] ? NonNullable<I> : never;

// The members of S that T lacks. A leaf of S is 0.
type Lacks<S, T, P extends string> = S extends 0
  ? never
  : S extends readonly (infer I)[]
    ? Lacks<I, Items<T>, P>
    : { [K in keyof S & string]-?: K extends Keys<T> ? Lacks<NonNullable<S[K]>, At<T, K>, ` + "`${P}/${K}`> : `lacks ${P}/${K}`" + ` }[keyof S & string];

// The members of T that S lacks.
type Has<S, T, P extends string> = S extends 0
  ? never
  : S extends readonly (infer I)[]
    ? Has<I, Items<T>, P>
    : string extends Keys<T>
      ? never
      : { [K in Keys<T> & string]: K extends keyof S ? Has<NonNullable<S[K]>, At<T, K>, ` + "`${P}/${K}`> : `has ${P}/${K}`" + ` }[Keys<T> & string];

// true if a variant of T may lack the member K.
type Absent<T, K> = T extends unknown ? (K extends keyof T ? (undefined extends T[K] ? true : never) : true) : never;

// The members of T that are always there, although answers may lack them.
type Promises<S, T, P extends string> = S extends 0
  ? never
  : S extends readonly (infer I)[]
    ? Promises<I, Items<T>, P>
    : string extends Keys<T>
      ? never
      : {
          [K in keyof S & Keys<T> & string]-?:
            | Promises<NonNullable<S[K]>, At<T, K>, ` + "`${P}/${K}`" + `>
            | (undefined extends S[K] ? (true extends Absent<T, K> ? never : ` + "`promises ${P}/${K}`" + `) : never);
        }[keyof S & Keys<T> & string];

type Both<S, T, P extends string> = Lacks<S, T, P> | Has<S, T, P> | Promises<S, T, P>;

// never if one of the shapes is that of T.
type Differences<Shapes extends unknown[], T, P extends string> = true extends {
  [I in keyof Shapes]: [Both<Shapes[I], T, P>] extends [never] ? true : false;
}[number]
  ? never
  : Both<Shapes[0], T, P>;

`

// shape returns the members of the values of a schema as a type. 0 is a value without members.
func (d *document) shape(schema object, at string, dropped []string) string {
	schema = d.resolve(schema)
	if items, found := schema["items"].(object); found {
		return "(" + d.shape(items, at, dropped) + ")[]"
	}
	members := d.members(schema)
	if len(members) == 0 {
		return "0"
	}
	required := d.required(schema)
	var out strings.Builder
	out.WriteString("{ ")
	for _, name := range slices.Sorted(maps.Keys(members)) {
		path := strings.TrimPrefix(at+"/"+name, "/")
		if !slices.Contains(dropped, path) {
			optional := map[bool]string{false: "?"}[slices.Contains(required, name)]
			fmt.Fprintf(&out, "%q%s: %s; ", name, optional, d.shape(members[name], path, dropped))
		}
	}
	return out.String() + "}"
}
