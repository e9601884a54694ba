package apigen

import (
	"fmt"
	"iter"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"switchboard/broker/api/spec"
)

// node is a node of the OpenAPI document. Its members have the order of the document.
type node struct {
	*yaml.Node
	root *yaml.Node
}

// document is the OpenAPI document.
type document struct {
	node
	operations []*operation // in the order of the document
}

// operation is a call.
type operation struct {
	node
	id, method string
	path       string // such as /v1/rooms/{room}
	parameters []member
	body       node // the schema; its Node is nil for none
	answer     node // the schema of the success; its Node is nil for none
}

// member is a parameter of a call, or a property of a schema.
type member struct {
	name     string
	in       string // of a parameter: path, query or header
	schema   node
	text     string
	required bool
	former   bool // deprecated
}

// read reads the document.
func read() (*document, error) {
	var parsed yaml.Node
	if err := yaml.Unmarshal(spec.OpenAPI(), &parsed); err != nil {
		return nil, err
	}
	root := parsed.Content[0]
	d := &document{node: node{root, root}}
	for path, item := range d.at("paths").members() {
		for method, n := range item.members() {
			d.operations = append(d.operations, newOperation(path, strings.ToUpper(method), n))
		}
	}
	if len(d.operations) == 0 {
		return nil, fmt.Errorf("the document has no operations")
	}
	return d, nil
}

func newOperation(path, method string, n node) *operation {
	o := &operation{node: n, id: n.at("operationId").text(), method: method, path: path}
	for _, p := range n.at("parameters").items() {
		p = p.resolve()
		o.parameters = append(o.parameters, member{
			name: p.at("name").text(), in: p.at("in").text(), schema: p.at("schema"), text: p.at("description").text(),
			required: p.at("required").text() == "true", former: p.at("deprecated").text() == "true",
		})
	}
	content := func(of node) node { return of.resolve().at("content", "application/json", "schema") }
	o.body, o.answer = content(n.at("requestBody")), content(n.at("responses", "200"))
	return o
}

// parameter returns the parameter with a name, if the operation has it.
func (o *operation) parameter(name string) (member, bool) {
	i := slices.IndexFunc(o.parameters, func(p member) bool { return p.name == name })
	if i < 0 {
		return member{}, false
	}
	return o.parameters[i], true
}

// query returns the parameters of the query.
func (o *operation) query() []member {
	return slices.DeleteFunc(slices.Clone(o.parameters), func(p member) bool { return p.in != "query" })
}

// sent returns the parameter with a name, or the member of the body.
func (o *operation) sent(name string) (member, error) {
	m, known := o.parameter(name)
	if !known {
		m, known = o.body.property(name)
	}
	if !known {
		return m, fmt.Errorf("the call has no %s", name)
	}
	return m, nil
}

// pattern returns the path with a mark in the place of each parameter.
func (o *operation) pattern(mark string) string {
	pattern := o.path
	for _, name := range o.names() {
		pattern = strings.Replace(pattern, "{"+name+"}", mark, 1)
	}
	return pattern
}

// last returns the last segment of the path.
func (o *operation) last() string { return o.path[strings.LastIndexByte(o.path, '/')+1:] }

// names returns the names of the parameters in the path.
func (o *operation) names() (list []string) {
	for segment := range strings.SplitSeq(o.path, "/") {
		if name, found := strings.CutPrefix(segment, "{"); found {
			list = append(list, strings.TrimSuffix(name, "}"))
		}
	}
	return list
}

// text returns the summary and the description.
func (o *operation) text() string {
	return strings.TrimSpace(o.at("summary").text() + " " + o.at("description").text())
}

// none reports whether there is no such node.
func (n node) none() bool { return n.Node == nil }

// at returns the node below n with a path of names. It follows no references.
func (n node) at(path ...string) node {
	for _, name := range path {
		next := node{root: n.root}
		for other, value := range n.members() {
			if other == name {
				next = value
			}
		}
		n = next
	}
	return n
}

// text returns the text of a scalar, "" for none.
func (n node) text() string {
	if n.none() || n.Kind != yaml.ScalarNode {
		return ""
	}
	return n.Value
}

// texts returns the texts of a list of scalars, or of one scalar.
func (n node) texts() (list []string) {
	if text := n.text(); text != "" {
		return []string{text}
	}
	for _, item := range n.items() {
		list = append(list, item.text())
	}
	return list
}

// items returns the items of a list.
func (n node) items() (list []node) {
	if n.none() || n.Kind != yaml.SequenceNode {
		return nil
	}
	for _, item := range n.Content {
		list = append(list, node{item, n.root})
	}
	return list
}

// members returns the members of an object.
func (n node) members() iter.Seq2[string, node] {
	return func(yield func(string, node) bool) {
		if n.none() || n.Kind != yaml.MappingNode {
			return
		}
		for i := 0; i < len(n.Content); i += 2 {
			if !yield(n.Content[i].Value, node{n.Content[i+1], n.root}) {
				return
			}
		}
	}
}

// resolve returns the node to which n refers, or n.
func (n node) resolve() node {
	for ref := n.at("$ref").text(); ref != ""; ref = n.at("$ref").text() {
		n = node{n.root, n.root}.at(strings.Split(strings.TrimPrefix(ref, "#/"), "/")...)
	}
	return n
}

// value returns the schema of the values of a schema: that to which it refers, directly or as the
// only one of allOf.
func (n node) value() node {
	for {
		next := n.resolve()
		if all := next.at("allOf").items(); len(all) == 1 && next.at("properties").none() {
			next = all[0].resolve()
		}
		if next.Node == n.Node {
			return n
		}
		n = next
	}
}

// component returns the name of the component to which a schema refers, such as Time, or "".
func (n node) component() string {
	ref := n.at("$ref").text()
	if all := n.at("allOf").items(); len(all) == 1 {
		ref = all[0].at("$ref").text()
	}
	return ref[strings.LastIndexByte(ref, '/')+1:]
}

// properties returns the members of an object with the schema.
func (n node) properties() (list []member) {
	n = n.value()
	required := n.at("required").texts()
	for name, schema := range n.at("properties").members() {
		list = append(list, member{
			name: name, schema: schema, text: describe(schema), required: slices.Contains(required, name),
			former: schema.value().at("deprecated").text() == "true",
		})
	}
	return list
}

// property returns the member of an object with a name.
func (n node) property(name string) (member, bool) {
	list := n.properties()
	i := slices.IndexFunc(list, func(m member) bool { return m.name == name })
	if i < 0 {
		return member{}, false
	}
	return list[i], true
}

// describe returns the text of a member: its own, or that of the component to which it refers. The
// texts of components with a pattern are about the form of a name, and not about the member.
func describe(schema node) string {
	if own := schema.at("description").text(); own != "" {
		return own
	}
	component := schema.value()
	if schema.component() == "" || !component.at("pattern").none() || component.at("type").text() == "object" {
		return ""
	}
	return component.at("description").text()
}

// typeOf returns the type of the values of a schema, and whether they may be null.
func (n node) typeOf() (typ string, nullable bool) {
	n = n.value()
	for _, text := range n.at("type").texts() {
		if text == "null" {
			nullable = true
		} else {
			typ = text
		}
	}
	return typ, nullable
}

// orNull returns the schema of the values that are not null, if the schema is one or null.
func (n node) orNull() (schema node, nullable bool) {
	if any := n.value().at("anyOf").items(); len(any) == 2 && any[1].at("type").text() == "null" {
		return any[0], true
	}
	return n, false
}

// walk calls visit for n and all nodes below it, in the order of the document.
func (n node) walk(visit func(node)) {
	visit(n)
	for _, item := range n.items() {
		item.walk(visit)
	}
	for _, value := range n.members() {
		value.walk(visit)
	}
}
