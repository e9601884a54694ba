package apigen

import (
	"fmt"
	"go/format"
	"slices"
	"strconv"
	"strings"
)

// generateCommands adds the table of the commands that make one call.
func generateCommands(d *document, files map[string][]byte) error {
	groups := map[string]string{}
	var order []string
	for _, o := range d.operations {
		list, err := o.signatures("x-cli")
		if err != nil {
			return err
		}
		for _, s := range list {
			c := &command{operation: o, signature: s, sent: map[string]bool{}}
			text, err := c.declare()
			if err != nil {
				return fmt.Errorf("%s %s: %w", s.owner, s.name, err)
			}
			if groups[s.owner] == "" {
				order = append(order, s.owner)
			}
			groups[s.owner] += text
		}
	}
	out := notice + "\npackage main\n\n// kitCommands are the commands that make one call of the kit, by their group.\nvar kitCommands = map[string][]kitCommand{\n"
	for _, group := range order {
		out += strconv.Quote(group) + ": {\n" + groups[group] + "},\n"
	}
	formatted, err := format.Source([]byte(out + "}\n"))
	if err != nil {
		return fmt.Errorf("commands: %w\n%s", err, out)
	}
	files["cmd/switchboard/kitcommands_gen.go"] = formatted
	return nil
}

// command is a command of the command line, such as room.reserve(users...). The names in the path
// are its first arguments. Those in parentheses follow, and are members of the body or parameters
// of the query; x... takes all further arguments. Other entries in parentheses are
//
//   - payload, the body as JSON
//   - x=secret, a member that is read from the standard input, and x=true, a fixed one
//   - -x, a member that is no flag
//
// All other members are flags. The result can be a member of the answer, such as .account.
type command struct {
	*operation
	signature

	use   string
	parts []string        // of the literal
	args  []string        // quoted
	sent  map[string]bool // members that are no flags
}

// declare returns the row of the table.
func (c *command) declare() (string, error) {
	c.use = c.name
	for _, name := range c.operation.names() {
		c.use += " " + placeholder(name)
	}
	for _, a := range c.arguments {
		c.argument(a)
	}
	if len(c.args) > 0 {
		c.parts = append(c.parts, "args: []string{"+strings.Join(c.args, ", ")+"}")
	}
	flags, err := c.flags()
	if err != nil {
		return "", err
	}
	if len(flags) > 0 {
		c.parts = append(c.parts, "flags: []kitFlag{\n"+strings.Join(flags, "")+"}")
	}
	if only, found := strings.CutPrefix(c.result, "."); found {
		c.parts = append(c.parts, "only: "+strconv.Quote(only))
	}
	if len(c.columns) > 0 {
		list := c.list()
		if list == "" {
			return "", fmt.Errorf("the answer has no list")
		}
		c.parts = append(c.parts, "list: "+strconv.Quote(list), "columns: []string{"+quotedList(c.columns)+"}")
	}
	short, _, _ := strings.Cut(unquote(c.signature.text, nil), ". ")
	head := fmt.Sprintf("use: %q, short: %q,\nmethod: %sCall, path: %q", c.use, strings.TrimSuffix(short, "."), strings.ToLower(c.method), c.pattern("{}"))
	return "{\n" + strings.Join(append([]string{head}, c.parts...), ",\n") + ",\n},\n", nil
}

// placeholder returns the name of an argument for people.
func placeholder(name string) string {
	if name == "id" { // of a hold
		return "HOLD"
	}
	return strings.ToUpper(name)
}

// argument adds what an entry in parentheses says.
func (c *command) argument(a argument) {
	name, excluded := strings.CutPrefix(a.name, "-")
	c.sent[name] = true
	switch {
	case excluded:
	case a.kind == "payload":
		c.use += " [JSON]"
		c.parts = append(c.parts, "payload: true")
	case a.kind == "secret":
		c.parts = append(c.parts, "secret: "+strconv.Quote(name))
	case a.kind == "true" || a.kind == "false":
		c.parts = append(c.parts, fmt.Sprintf("body: map[string]any{%q: %s}", name, a.kind))
	case a.many:
		one := strings.TrimSuffix(placeholder(name), "S")
		if m, _ := c.body.property(name); !m.required {
			one = "[" + one + "]"
		}
		c.use += " " + one + "..."
		c.args = append(c.args, strconv.Quote(name+"..."))
	default:
		c.use += " " + placeholder(name)
		c.args = append(c.args, strconv.Quote(name))
	}
}

// flags returns the flags of the command.
func (c *command) flags() (list []string, err error) {
	used := map[string]bool{}
	if _, conditional := c.parameter("If-Match"); conditional {
		list, used["version"] = append(list, "{\"version\", version, \"refuse another `version`\"},\n"), true
	}
	for _, m := range append(c.query(), c.body.properties()...) {
		kind := flagKind(m)
		name := strings.ReplaceAll(m.name, "_", "-")
		if kind == "millis" {
			name = strings.TrimSuffix(name, "-ms")
		}
		if c.sent[m.name] || kind == "" || used[name] {
			continue
		}
		used[name] = true
		list = append(list, fmt.Sprintf("{%q, %s, %s},\n", name, kind, strconv.Quote(usage(m, name, kind))))
	}
	return list, nil
}

// flagKind returns the kind of the flag for a member, "" if it cannot be a flag.
func flagKind(m member) string {
	schema := m.schema.value()
	switch typ, _ := schema.typeOf(); {
	case m.schema.component() == "Time":
		return "instants"
	case typ == "string" && slices.Contains(schema.at("enum").texts(), "true"), typ == "boolean":
		return "boolean"
	case typ == "string":
		return "text"
	case typ == "integer" && strings.HasSuffix(m.name, "_ms"):
		return "millis"
	case typ == "integer":
		return "whole"
	case typ == "array":
		if item, _ := schema.at("items").typeOf(); item != "string" {
			return ""
		}
		return "texts"
	}
	return "object"
}

// usage returns the text of a flag. Backquotes mark the name of its value.
func usage(m member, name, kind string) string {
	text := unquote(sentence(m.text), nil)
	if text == "" {
		text = "the " + strings.ReplaceAll(name, "-", " ")
	}
	for _, absent := range []string{"0 or absent: ", "Absent: "} {
		text = strings.Replace(text, absent, "without the flag ", 1)
	}
	text = strings.Replace(text, ". without", "; without", 1)
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "1 or true: "), ". ")
	text = lowerFirst(strings.TrimSuffix(text, "."))
	main, rest, _ := strings.Cut(text, "; ")
	if strings.HasPrefix(text, "without the flag ") {
		main, rest = "", text
	}
	main = qualify(m, name, kind, main)
	return strings.TrimPrefix(strings.TrimSuffix(main+"; "+rest, "; "), "; ")
}

// qualify adds the values of the flag to its text, and marks the name of its value.
func qualify(m member, name, kind, text string) string {
	schema := m.schema.value()
	values := schema.at("enum").texts()
	switch {
	case kind == "text" && len(values) > 1:
		last := len(values) - 1
		return strings.TrimPrefix(text+": "+strings.Join(values[:last], ", ")+" or "+values[last], ": ")
	case kind == "text":
		return mark(text, "user")
	case name == "limit":
		return fmt.Sprintf("%s, %s to %s", text, schema.at("minimum").text(), schema.at("maximum").text())
	case kind == "instants" && strings.HasPrefix(text, "when "):
		return "the `time` " + text
	case kind == "instants":
		return mark(text, "time")
	case kind == "object" && !strings.Contains(text, "JSON"):
		return "`JSON` " + text
	case kind == "object":
		return mark(text, "JSON")
	}
	return text
}

// mark puts the first occurrence of a word in backquotes.
func mark(text, word string) string {
	return strings.TrimSpace(strings.Replace(text+" ", " "+word+" ", " `"+word+"` ", 1))
}

// list returns the name of the list in the answer.
func (c *command) list() string {
	answer := c.answer.value()
	if alternatives := answer.at("oneOf").items(); len(alternatives) > 0 {
		answer = alternatives[0].value()
	}
	for _, m := range answer.properties() {
		if typ, _ := m.schema.typeOf(); typ == "array" {
			return m.name
		}
	}
	return ""
}

func quotedList(list []string) string {
	quoted := make([]string, len(list))
	for i, text := range list {
		quoted[i] = strconv.Quote(text)
	}
	return strings.Join(quoted, ", ")
}
