package apigen

import (
	"fmt"
	"strings"
)

// goTypes are the types in Go.
type goTypes struct{ *namedTypes }

// of returns the type in Go of the values of a schema, in a package.
func (t *goTypes) of(m member, pkg string) string {
	for _, n := range []node{m.schema, m.schema.value()} {
		if typ := n.at("x-go-type").text(); typ != "" {
			return typ
		}
	}
	schema, nullable := m.schema.orNull()
	typ, also := schema.typeOf()
	name := t.name(schema, pkg)
	switch {
	case name != "":
	case typ == "string", !schema.value().at("enum").none():
		name = "string"
	case typ == "boolean":
		name = "bool"
	case typ == "number":
		name = "float64"
	case typ == "integer":
		name = integer(m, schema)
	case typ == "array":
		return "[]" + t.of(member{schema: schema.value().at("items")}, pkg)
	case typ == "object":
		return "map[string]" + t.of(member{schema: schema.value().at("additionalProperties")}, pkg)
	default:
		return "json.RawMessage"
	}
	if nullable || also {
		return "*" + name
	}
	return name
}

// integer returns int64 for durations in ms and numbers that may be negative, and otherwise int.
func integer(m member, schema node) string {
	least := schema.value().at("minimum").text()
	if least == "" || strings.HasPrefix(least, "-") || strings.HasSuffix(m.name, "_ms") {
		return "int64"
	}
	return "int"
}

// field returns the name of the field for a member.
func field(m member) string {
	if name := m.schema.at("x-go-name").text(); name != "" {
		return name
	}
	return goName(m.name)
}

// declare returns the declaration of a type.
func (t *goTypes) declare(typ *namedType) (string, error) {
	var out strings.Builder
	if typ.text == "" {
		return "", fmt.Errorf("%s.%s has no text", typ.pkg, typ.name)
	}
	renamed := map[string]string{}
	for _, m := range typ.members() {
		renamed[m.name] = field(m)
	}
	out.WriteString(comment("", goSentence(typ.name, unquote(typ.text, renamed), true)))
	fmt.Fprintf(&out, "type %s struct {\n", typ.name)
	inherited := map[string]string{}
	if typ.embed != "" {
		base := t.find(typ.embed, typ.pkg)
		if base == nil {
			return "", fmt.Errorf("%s.%s embeds %s, which is no type", typ.pkg, typ.name, typ.embed)
		}
		fmt.Fprintf(&out, "\t%s\n", base.in(typ.pkg))
		for _, m := range base.members() {
			inherited[m.name] = t.of(m, base.pkg)
		}
	}
	for _, m := range typ.members() {
		if goes, found := inherited[m.name]; !found || goes != t.of(m, typ.pkg) && typ.query == nil && !typ.pointers {
			out.WriteString(t.field(typ, m, renamed))
		}
	}
	out.WriteString("}\n\n")
	if typ.query != nil {
		out.WriteString(typ.values())
	}
	return out.String(), nil
}

// field returns the declaration of a field.
func (t *goTypes) field(typ *namedType, m member, renamed map[string]string) string {
	name, goes := field(m), t.of(m, typ.pkg)
	if typ.wide && goes == "int" {
		goes = "int64"
	}
	_, isStruct := t.byName[strings.TrimPrefix(qualified(goes, typ.pkg), "*")]
	own := m.schema.at("x-go-type").text() != ""
	if !m.required && !own && (typ.pointers || isStruct) && !strings.HasPrefix(goes, "*") {
		goes = "*" + goes
	}
	tag := ""
	if typ.query == nil {
		tag = fmt.Sprintf(" `json:%q`", m.name+map[bool]string{false: ",omitempty"}[m.required || typ.zeros])
	}
	text := goText(m, renamed)
	body := strings.TrimSuffix(text, ".")
	switch {
	case m.former:
		return comment("\t", "Deprecated: "+name+" is "+lowerFirst(text)) + fmt.Sprintf("\t%s %s%s\n", name, goes, tag)
	case text == "":
		return fmt.Sprintf("\t%s %s%s\n", name, goes, tag)
	case len(body) <= 64 && !strings.Contains(body, ". "):
		return fmt.Sprintf("\t%s %s%s // %s\n", name, goes, tag, lowerFirst(body))
	}
	return comment("\t", text) + fmt.Sprintf("\t%s %s%s\n", name, goes, tag)
}

// goText returns the text of a member, for the comment of its field.
func goText(m member, renamed map[string]string) string {
	text, zero := unquote(sentence(m.text), renamed), "Zero means "
	if strings.HasPrefix(m.schema.at("x-go-type").text(), "*") {
		zero = "Nil means "
	}
	for _, absent := range []string{"0 or absent: ", "Absent: ", "Absent or 0: "} {
		text = strings.Replace(text, absent, zero, 1)
	}
	switch {
	case m.schema.component() != "Time":
		return text
	case text == "Milliseconds since 1970.":
		return "Unix ms."
	case strings.Contains(text, ". "):
		return text + " Unix ms."
	}
	return strings.TrimSuffix(text, ".") + ", Unix ms."
}

// qualified returns the name of a type with its package.
func qualified(name, pkg string) string {
	if strings.Contains(name, ".") {
		return name
	}
	pointer := strings.HasPrefix(name, "*")
	return map[bool]string{true: "*"}[pointer] + pkg + "." + strings.TrimPrefix(name, "*")
}

// values returns the method that makes a query string of a type.
func (typ *namedType) values() string {
	var pairs []string
	for i, m := range typ.members() {
		line := map[bool]string{true: "\n"}[i%4 == 0]
		pairs = append(pairs, fmt.Sprintf("%s%q, q.%s", line, m.name, field(m)))
	}
	return fmt.Sprintf("func (q %s) values() url.Values {\n\treturn values(%s,\n)\n}\n\n", typ.name, strings.Join(pairs, ", "))
}
