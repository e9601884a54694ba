package apigen

import (
	"fmt"
	"go/format"
	"slices"
	"strings"
)

// goPackages are the packages of types in Go that the methods use.
var goPackages = map[string]string{
	"account": "switchboard/client/account", "board": "switchboard/client/board", "hold": "switchboard/client/hold",
	"room": "switchboard/client/room", "scene": "switchboard/client/scene",
	"context": "context", "json": "encoding/json", "http": "net/http", "url": "net/url", "time": "time",
}

// generateGo adds the files in Go.
func generateGo(d *document, files map[string][]byte) error {
	named, err := readTypes(d, "x-go", "backend")
	if err != nil {
		return err
	}
	types := &goTypes{named}
	sources := map[string]*strings.Builder{}
	source := func(path string) *strings.Builder {
		if sources[path] == nil {
			sources[path] = &strings.Builder{}
		}
		return sources[path]
	}
	for _, typ := range types.list {
		text, err := types.declare(typ)
		if err != nil {
			return err
		}
		path := "client/" + typ.pkg + "/types_gen.go"
		source(path).WriteString(text)
	}
	for _, o := range d.operations {
		methods, err := o.signatures("x-go")
		if err != nil {
			return err
		}
		for _, s := range methods {
			text, err := types.method(o, s)
			if err != nil {
				return fmt.Errorf("%s: %w", o.id, err)
			}
			source("client/backend/" + strings.ToLower(s.owner) + "_gen.go").WriteString(text)
		}
	}
	table, err := d.repeatsGo()
	if err != nil {
		return err
	}
	source("client/backend/repeats_gen.go").WriteString(table)
	for path, text := range sources {
		pkg := strings.Split(path, "/")[1]
		formatted, err := format.Source([]byte(head(pkg, text.String()) + text.String()))
		if err != nil {
			return fmt.Errorf("%s: %w\n%s", path, err, text)
		}
		files[path] = formatted
	}
	return nil
}

// head returns the beginning of a file of a package, with the imports that its text uses.
func head(pkg, text string) string {
	var standard, own []string
	for name, path := range goPackages {
		switch {
		case name == pkg || !uses(text, name):
		case strings.HasPrefix(path, "switchboard/"):
			own = append(own, fmt.Sprintf("%q\n", path))
		default:
			standard = append(standard, fmt.Sprintf("%q\n", path))
		}
	}
	slices.Sort(standard)
	slices.Sort(own)
	out := notice + "\npackage " + pkg + "\n\n"
	if len(standard)+len(own) > 0 {
		out += "import (\n" + strings.Join(standard, "") + "\n" + strings.Join(own, "") + ")\n\n"
	}
	return out
}

// uses reports whether code uses a package.
func uses(code, pkg string) bool {
	for line := range strings.SplitSeq(code, "\n") {
		line, _, _ = strings.Cut(line, "//")
		for _, before := range []string{" ", "]", "*", "(", "\t"} {
			if strings.Contains(line, before+pkg+".") {
				return true
			}
		}
	}
	return false
}

// method returns the declaration of a method that calls an operation.
func (t *goTypes) method(o *operation, s signature) (string, error) {
	m := &goMethod{types: t, operation: o, signature: s, receiver: strings.ToLower(s.owner[:1])}
	if err := m.read(); err != nil {
		return "", fmt.Errorf("%s: %w", s.name, err)
	}
	var out strings.Builder
	out.WriteString(comment("", goSentence(s.name, s.text, false)+goCodes(o)))
	results, target, value := "(answer "+m.result+", err error)", "&answer", "answer"
	switch {
	case s.result == "-":
		results, target = "error", "nil"
	case m.member != "":
		results, value = "("+m.result+", error)", "answer."+goName(m.member)
	}
	owner := s.owner
	if owner == "Client" {
		owner = "*Client"
	}
	fmt.Fprintf(&out, "func (%s %s) %s(%s) %s {\n", m.receiver, owner, s.name, strings.Join(append([]string{"ctx context.Context"}, m.arguments...), ", "), results)
	out.WriteString(m.before.String())
	if m.member != "" {
		fmt.Fprintf(&out, "\tvar answer struct {\n\t\t%s %s `json:%q`\n\t}\n", goName(m.member), m.result, m.member)
	}
	call := fmt.Sprintf("%s.Call(ctx, %s, %s)", m.receiver, m.request(), target)
	switch {
	case s.result == "-":
		fmt.Fprintf(&out, "\treturn %s\n}\n\n", call)
	case m.member != "":
		fmt.Fprintf(&out, "\terr := %s\n\treturn %s, err\n}\n\n", call, value)
	default:
		fmt.Fprintf(&out, "\terr = %s\n\treturn answer, err\n}\n\n", call)
	}
	return out.String(), nil
}

// goCodes returns a sentence with the error codes that belong to the operation.
func goCodes(o *operation) string {
	var codes []string
	for status, response := range o.at("responses").members() {
		if slices.Contains([]string{"404", "409", "410", "423"}, status) {
			for _, code := range response.resolve().at("x-error-codes").texts() {
				codes = append(codes, "client."+goName(code))
			}
		}
	}
	if len(codes) == 0 {
		return ""
	}
	last := len(codes) - 1
	list := strings.Join(codes[:last], ", ") + map[bool]string{true: " or "}[last > 0] + codes[last]
	return " Its error can have the code " + list + "."
}

// goMethod is a method that is generated.
type goMethod struct {
	types *goTypes
	*operation
	signature

	receiver  string
	arguments []string        // with their types
	names     []string        // of the arguments that are in the path
	query     string          // an expression, "" for none
	body      string          // an expression, "" for none
	header    string          // an expression, "" for none
	before    strings.Builder // statements before the call
	result    string          // the type of the result
	member    string          // of the answer, if it is the result
}

// renamed are the names of arguments that would hide a package.
var renamed = map[string]string{"room": "id", "account": "id", "client": "id", "board": "name", "hold": "id", "scene": "id"}

// read finds out what the method sends and returns.
func (m *goMethod) read() error {
	for _, name := range m.operation.names() {
		m.names = append(m.names, local(name))
	}
	if len(m.names) > 0 {
		m.arguments = append(m.arguments, strings.Join(m.names, ", ")+" string")
	}
	var sent []sentMember
	for _, a := range m.signature.arguments {
		switch a.kind {
		case "body":
			m.arguments, m.body = append(m.arguments, "body "+a.typ), "body"
		case "options":
			m.arguments, m.body = append(m.arguments, "options ..."+a.typ), "optional(options)"
		case "query":
			m.arguments, m.query = append(m.arguments, "q "+a.typ), "q.values()"
		case "page":
			m.arguments, m.query = append(m.arguments, "p PageQuery"), "p.values()"
		case "version":
			dots := map[bool]string{true: "..."}[a.many]
			m.arguments, m.header = append(m.arguments, "version "+dots+"int64"), "condition(version"+dots+")"
		default:
			one, err := m.send(a)
			if err != nil {
				return err
			}
			sent = append(sent, one)
		}
	}
	m.write(sent)
	return m.returns()
}

// local returns the name of an argument.
func local(name string) string {
	if other := renamed[name]; other != "" {
		return other
	}
	return name
}

// sentMember is a member of the body, or a parameter of the query, that an argument sets.
type sentMember struct {
	member
	variable, value string
	pointer, always bool
	typ             string
}

// send returns the member that an argument sets.
func (m *goMethod) send(a argument) (one sentMember, err error) {
	name, isTime := a.kind, a.kind == "ttl"
	if isTime {
		name = "ttl_ms"
	}
	found, err := m.operation.sent(name)
	if err != nil {
		return one, err
	}
	one = sentMember{member: found, variable: local(a.name), typ: a.typ, always: a.always || found.required}
	if one.typ == "" {
		one.typ = m.types.of(found, "backend")
	}
	if a.many {
		one.typ = "..." + strings.TrimPrefix(one.typ, "[]")
	}
	if one.value = one.variable; isTime {
		one.typ, one.value = "time.Duration", one.variable+".Milliseconds()"
	}
	one.pointer = strings.HasPrefix(one.typ, "*")
	m.goArgument(one)
	return one, nil
}

// goArgument adds an argument. Neighbors of one type share it.
func (m *goMethod) goArgument(one sentMember) {
	if n := len(m.arguments); n > 0 {
		if names, same := strings.CutSuffix(m.arguments[n-1], " "+one.typ); same && !strings.Contains(one.typ, "...") {
			m.arguments[n-1] = names + ", " + one.variable + " " + one.typ
			return
		}
	}
	m.arguments = append(m.arguments, one.variable+" "+one.typ)
}

// write writes how the members are sent.
func (m *goMethod) write(sent []sentMember) {
	if len(sent) == 0 {
		return
	}
	var always, pairs []string
	for _, one := range sent {
		pairs = append(pairs, fmt.Sprintf("%q, %s", one.name, one.value))
		if one.always {
			always = append(always, fmt.Sprintf("%q: %s", one.name, one.value))
		}
	}
	if m.operation.body.none() {
		if m.query != "" { // of a page
			m.query = "merge(" + m.query + ", " + strings.Join(pairs, ", ") + ")"
		} else {
			m.query = "values(" + strings.Join(pairs, ", ") + ")"
		}
		return
	}
	literal := "map[string]any{" + strings.Join(always, ", ") + "}"
	if len(always) == len(sent) {
		m.body = literal
		return
	}
	m.body = "body"
	fmt.Fprintf(&m.before, "\tbody := %s\n", literal)
	for _, one := range sent {
		if !one.always {
			zero := map[bool]string{true: "nil"}[one.pointer]
			if zero == "" {
				zero = zeroOf(one.typ)
			}
			fmt.Fprintf(&m.before, "\tif %s != %s {\n\t\tbody[%q] = %s\n\t}\n", one.variable, zero, one.name, one.value)
		}
	}
}

// zeroOf returns the zero value of a type.
func zeroOf(typ string) string {
	switch typ {
	case "string":
		return `""`
	case "bool":
		return "false"
	}
	return "0"
}

// returns finds out what the method returns.
func (m *goMethod) returns() error {
	name, isMember := strings.CutPrefix(m.signature.result, ".")
	switch {
	case m.signature.result == "-":
	case isMember:
		found, known := m.answer.property(name)
		if !known {
			return fmt.Errorf("the answer has no %s", name)
		}
		m.member, m.result = name, m.types.of(found, "backend")
	case m.signature.result != "":
		m.result = m.signature.result
	default:
		if m.result = m.types.name(m.answer, "backend"); m.result == "" {
			return fmt.Errorf("the answer has no type")
		}
	}
	return nil
}

// request returns the expression of the call.
func (m *goMethod) request() string {
	verb := m.method[:1] + strings.ToLower(m.method[1:])
	where := fmt.Sprintf("%q", m.path)
	if len(m.names) > 0 {
		where = fmt.Sprintf("path(%q, %s)", m.pattern("{}"), strings.Join(m.names, ", "))
	}
	out := "Request{Method: http.Method" + verb + ", Path: " + where
	for _, part := range [][2]string{{"Query", m.query}, {"Header", m.header}, {"Body", m.body}} {
		if part[1] != "" {
			out += ", " + part[0] + ": " + part[1]
		}
	}
	return out + "}"
}
