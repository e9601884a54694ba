package apigen

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// tsTypes are the types in TypeScript.
type tsTypes struct {
	*namedTypes
	sent map[any]bool // the schemas of bodies and of what they hold
}

// newTSTypes reads the types of the document.
func newTSTypes(d *document) (*tsTypes, error) {
	named, err := readTypes(d, "x-ts", "server")
	if err != nil {
		return nil, err
	}
	t := &tsTypes{named, map[any]bool{}}
	for _, o := range d.operations {
		t.markSent(o.body)
	}
	for _, method := range d.at("x-methods").members() {
		t.markSent(method.at("data"))
	}
	return t, nil
}

// markSent marks a schema of what clients send.
func (t *tsTypes) markSent(schema node) {
	if schema.none() {
		return
	}
	t.sent[schema.value().Node] = true
	for _, m := range schema.properties() {
		t.markSent(m.schema)
	}
	t.markSent(schema.value().at("items"))
}

// tsPlace is where a type is written.
type tsPlace struct {
	pkg string
	any string // the type of any JSON
}

// place returns where the members of a schema are written.
func (t *tsTypes) place(schema node, pkg string) tsPlace {
	if !schema.none() && t.sent[schema.value().Node] {
		return tsPlace{pkg, "JsonInput"}
	}
	return tsPlace{pkg, "Json"}
}

// of returns the type of the values of a schema.
func (t *tsTypes) of(schema node, in tsPlace) string {
	schema, nullable := schema.orNull()
	typ, also := schema.typeOf()
	text := t.name(schema, in.pkg)
	text = text[strings.LastIndexByte(text, '.')+1:] // types are imported by their names
	if text == "" {
		text = t.unnamed(schema.value(), typ, in)
	}
	for _, n := range []node{schema.value(), schema} {
		if own := n.at("x-ts-type").text(); own != "" {
			text = own
		}
	}
	if nullable || also {
		return text + " | null"
	}
	return text
}

// unnamed returns the type of the values of a schema without a name.
func (t *tsTypes) unnamed(schema node, typ string, in tsPlace) string {
	if only := schema.at("const").text(); only == "true" || only == "false" {
		return only
	}
	if list := schema.at("enum").texts(); len(list) > 0 {
		for i := range list {
			list[i] = strconv.Quote(list[i])
		}
		return strings.Join(list, " | ")
	}
	switch typ {
	case "string", "boolean":
		return typ
	case "integer", "number":
		return "number"
	case "array":
		item := t.of(schema.at("items"), in)
		if strings.Contains(item, " | ") {
			item = "(" + item + ")"
		}
		return item + "[]"
	case "object":
		if more := schema.at("additionalProperties"); schema.at("properties").none() {
			return "Record<string, " + t.of(more, in) + ">"
		}
		return t.object(schema, in)
	}
	return in.any
}

// object returns the type of an object without a name.
func (t *tsTypes) object(schema node, in tsPlace) string {
	return object(t.memberTypes(schema.properties(), in))
}

// memberTypes returns the declarations of members, such as name?: string.
func (t *tsTypes) memberTypes(members []member, in tsPlace) (list []string) {
	for _, m := range members {
		comment := ""
		if m.former {
			comment = "/** @deprecated " + m.text + " */ "
		}
		list = append(list, comment+declared(m)+": "+t.of(m.schema, in))
	}
	return list
}

// declared returns the name of a member with a question mark, if the member may be absent.
func declared(m member) string { return m.name + map[bool]string{false: "?"}[m.required] }

func object(members []string) string { return "{ " + strings.Join(members, "; ") + " }" }

// declare returns the declaration of an interface.
func (t *tsTypes) declare(typ *namedType) (string, error) {
	var out strings.Builder
	if typ.text != "" {
		out.WriteString(doc("", typ.text))
	}
	in := t.place(typ.schema, typ.pkg)
	inherited, extends := map[string]string{}, ""
	if typ.embed != "" {
		base := t.find(typ.embed, typ.pkg)
		if base == nil {
			return "", fmt.Errorf("%s extends %s, which is no type", typ.name, typ.embed)
		}
		for _, m := range base.members() {
			inherited[m.name] = fmt.Sprint(t.of(m.schema, t.place(base.schema, base.pkg)), m.required)
		}
		extends = base.name
	}
	var own, omitted []string
	for _, m := range typ.members() {
		goes := t.of(m.schema, in)
		before, found := inherited[m.name]
		if before == fmt.Sprint(goes, m.required) {
			continue
		}
		if found {
			omitted = append(omitted, strconv.Quote(m.name))
		}
		own = append(own, memberDoc(m)+declared(m)+": "+goes+";\n")
	}
	if len(omitted) > 0 {
		extends = "Omit<" + extends + ", " + strings.Join(omitted, " | ") + ">"
	}
	if extends != "" {
		extends = " extends " + extends
	}
	if typ.open {
		own = append(own, "[more: string]: unknown;\n")
	}
	fmt.Fprintf(&out, "export interface %s%s {\n%s}\n\n", typ.name, extends, strings.Join(own, ""))
	return out.String(), nil
}

// memberDoc returns the comment of a member of an interface.
func memberDoc(m member) string {
	text := sentence(m.text)
	switch {
	case m.schema.component() != "Time":
	case text == "Milliseconds since 1970.":
		text = "In ms since 1970."
	case strings.Contains(text, ". "):
		text += " In ms since 1970."
	default:
		text = strings.TrimSuffix(text, ".") + ", in ms since 1970."
	}
	if m.former {
		text = "@deprecated " + text
	}
	if text == "" {
		return ""
	}
	return doc("  ", text)
}

// doc returns a comment.
func doc(indent, text string) string {
	if len(indent)+len(text)+7 <= width {
		return indent + "/** " + text + " */\n"
	}
	out := indent + "/**\n"
	for _, line := range wrap(text, width-len(indent)-3) {
		out += indent + " * " + line + "\n"
	}
	return out + indent + " */\n"
}

// tsModules are the modules in which types are written by hand.
var tsModules = map[string][]string{
	"api.js": {"Condition", "headersOf"}, "wire.js": {"Json", "JsonInput", "Member", "WireField"},
	"server/push.js": {"PushError"}, "server/backend.js": {"Backend"}, "server/answers.js": {"Scope"},
	"server/arguments.js": {"TtlOption", "membersOf", "path"},
}

// imports returns the imports that the text of a module uses, of the types of other modules.
func (t *tsTypes) imports(module, text string) string {
	names := map[string][]string{}
	for other, list := range tsModules {
		names[other] = list
	}
	for _, typ := range t.list {
		other := typ.pkg + "/types.gen.js"
		names[other] = append(slices.Clone(names[other]), typ.name)
	}
	var lines []string
	for other, list := range names {
		list = slices.DeleteFunc(slices.Clone(list), func(name string) bool {
			return !regexp.MustCompile(`(^|[^\w"` + "`" + `])` + name + `\b`).MatchString(code(text))
		})
		if other == module || len(list) == 0 {
			continue
		}
		slices.Sort(list)
		kind := "type "
		if strings.ContainsAny(list[len(list)-1][:1], "abcdefghijklmnopqrstuvwxyz") { // functions
			kind = ""
			for i, name := range list {
				if upperFirst(name) == name {
					list[i] = "type " + name
				}
			}
		}
		path, here := other, strings.Split(module, "/")[0]+"/"
		if rest, same := strings.CutPrefix(other, here); same {
			path = "./" + rest
		} else {
			path = "../" + other
		}
		lines = append(lines, fmt.Sprintf("import %s{ %s } from %q;\n", kind, strings.Join(list, ", "), path))
	}
	slices.Sort(lines)
	return strings.Join(lines, "") + map[bool]string{true: "\n"}[len(lines) > 0]
}

// code returns a text without comments.
func code(text string) string {
	return regexp.MustCompile(`(?s)/\*.*?\*/`).ReplaceAllString(text, "")
}
