package apigen

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// TypeScript returns the generated modules by their path in client/js. They are not formatted.
func TypeScript() (map[string]string, error) {
	d, err := read()
	if err != nil {
		return nil, err
	}
	types, err := newTSTypes(d)
	if err != nil {
		return nil, err
	}
	modules := map[string]string{}
	for _, typ := range types.list {
		text, err := types.declare(typ)
		if err != nil {
			return nil, err
		}
		modules[typ.pkg+"/types.gen.ts"] += text
	}
	methods, err := types.methods(d)
	if err != nil {
		return nil, err
	}
	if modules["server/kit.gen.ts"], err = types.kit(methods); err != nil {
		return nil, err
	}
	if modules["server/repeats.gen.ts"], err = d.repeatsTS(); err != nil {
		return nil, err
	}
	for path, text := range modules {
		modules[path] = notice + types.imports(strings.TrimSuffix(path, ".ts")+".js", text) + text
	}
	files := map[string]string{"test/kitcalls.gen.ts": types.samples(methods)}
	for path, text := range modules {
		files["src/"+path] = text
	}
	return files, nil
}

// methods returns the methods of the class Kit.
func (t *tsTypes) methods(d *document) (order []*tsMethod, err error) {
	methods := map[string]*tsMethod{}
	for _, o := range d.operations {
		list, err := o.signatures("x-ts")
		if err != nil {
			return nil, err
		}
		for _, s := range list {
			m := methods[s.name]
			if m == nil {
				m = &tsMethod{types: t, signature: s}
				methods[s.name], order = m, append(order, m)
			}
			m.operations = append(m.operations, o)
		}
	}
	return order, nil
}

// kit returns the class Kit.
func (t *tsTypes) kit(methods []*tsMethod) (string, error) {
	out := "/**\n * The kit's calls for backends. See docs/rooms.md, holds.md, boards.md, accounts.md and scenes.md.\n */\n" +
		"export class Kit {\n  constructor(private readonly backend: Backend) {}\n"
	for _, m := range methods {
		text, err := m.declare()
		if err != nil {
			return "", fmt.Errorf("%s: %w", m.name, err)
		}
		out += "\n" + text
	}
	return out + "}\n", nil
}

// tsMethod is a method of the class Kit. Operations whose paths differ in the last segment only can
// have the same method, with the argument operation.
type tsMethod struct {
	types      *tsTypes
	operations []*operation
	signature

	parameters []string
	options    []string // of the call
}

// declare returns the method.
func (m *tsMethod) declare() (string, error) {
	o := m.operations[0]
	for _, name := range o.names() {
		m.parameters = append(m.parameters, name+": string")
	}
	if err := m.send(o); err != nil {
		return "", err
	}
	path := o.path
	if len(m.operations) > 1 {
		path = path[:strings.LastIndexByte(path, '/')+1] + "{operation}"
	}
	where := strconv.Quote(path)
	if strings.Contains(path, "{") {
		where = "path`" + strings.ReplaceAll(path, "{", "${") + "`"
	}
	result, err := m.returns(o)
	if err != nil {
		return "", err
	}
	options := ""
	if len(m.options) > 0 {
		options = ", { " + strings.Join(m.options, ", ") + " }"
	}
	return fmt.Sprintf("%s%s%s(%s): Promise<%s> {\nreturn this.backend.call(%q, %s%s);\n}\n",
		doc("  ", m.signature.text), m.name, m.generic, strings.Join(m.parameters, ", "), result, o.method, where, options), nil
}

// in returns where the types of the method are written.
func (m *tsMethod) in(schema node) tsPlace {
	place := m.types.place(schema, "server")
	if m.generic != "" {
		place.any = "Data"
	}
	return place
}

// send adds what the arguments send.
func (m *tsMethod) send(o *operation) error {
	var members []string
	for _, a := range m.arguments {
		switch {
		case a.kind == "operation":
			m.operation()
		case a.kind == "condition":
			m.parameters, m.options = append(m.parameters, "condition?: Condition"), append(m.options, "headers: headersOf(condition)")
		case a.kind == "time":
			m.parameters, members = append(m.parameters, "time?: TtlOption"), append(members, "...membersOf(time)")
		case a.kind == "query":
			query := slices.DeleteFunc(o.query(), func(p member) bool { return a.typ == "-"+p.name })
			m.whole(a, "query", m.types.memberTypes(query, tsPlace{"server", "Json"}), "")
		case a.kind == "body" && o.body.properties() == nil:
			m.parameters, m.options = append(m.parameters, a.name+": "+m.in(o.body).any), append(m.options, property("body", a.name))
		case a.kind == "body":
			own, left := a.typ, o.body.properties()
			if strings.HasPrefix(own, "-") {
				left, own = slices.DeleteFunc(left, func(p member) bool { return own == "-"+p.name }), ""
			}
			if own == "" {
				own = m.types.name(o.body, "server")
				own = own[strings.LastIndexByte(own, '.')+1:]
			}
			m.whole(a, "body", m.types.memberTypes(left, m.in(o.body)), own)
		default:
			found, err := o.sent(a.kind)
			if err != nil {
				return err
			}
			optional := map[bool]string{true: "?"}[!found.required && !a.always]
			m.parameters = append(m.parameters, found.name+optional+": "+m.types.of(found.schema, m.in(o.body)))
			members = append(members, found.name)
		}
	}
	if len(members) > 0 {
		to := "body"
		if o.body.properties() == nil {
			to = "query"
		}
		m.options = append(m.options, to+": { "+strings.Join(members, ", ")+" }")
	}
	return nil
}

// operation adds the argument that chooses one of the operations.
func (m *tsMethod) operation() {
	var names []string
	for _, o := range m.operations {
		names = append(names, strconv.Quote(o.last()))
	}
	m.parameters = append(m.parameters, "operation: "+strings.Join(names, " | "))
}

// whole adds an argument that is all of the body or of the query. Its type is own, or that of its
// members. It may be absent if all members may be.
func (m *tsMethod) whole(a argument, to string, members []string, own string) {
	required := slices.ContainsFunc(members, func(text string) bool {
		text = text[strings.LastIndex(text, "*/")+1:]
		return !strings.Contains(strings.Split(text, ":")[0], "?")
	})
	byDefault := map[bool]string{true: " = {}"}[a.many || to == "query" && !required]
	if own == "" {
		own = object(members)
	}
	m.parameters = append(m.parameters, a.name+": "+own+byDefault)
	m.options = append(m.options, property(to, a.name))
}

// property returns the member of an object literal.
func property(name, value string) string {
	if name == value {
		return name
	}
	return name + ": " + value
}

// returns returns the type of the result.
func (m *tsMethod) returns(o *operation) (string, error) {
	switch {
	case m.result == "-":
		return "void", nil
	case m.result == "":
		return m.types.of(o.answer, m.in(o.answer)), nil
	}
	schema := node{o.root, o.root}.at("components", "schemas", m.result)
	if schema.none() {
		return m.result, nil
	}
	return m.types.of(schema, m.in(schema)), nil
}
