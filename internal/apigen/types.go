package apigen

import (
	"fmt"
	"slices"
	"strings"
)

// namedType is the name of a schema, or of the parameters of a call, in one of the clients.
type namedType struct {
	pkg, name string
	schema    node       // Node is nil for a type of parameters
	query     *operation // of which the type has the parameters
	without   []string   // members that it does not have
	embed     string     // a type that it embeds
	pointers  bool       // absent members are nil
	required  []string   // members that are always present, although the document does not say it
	open      bool       // further members are permitted
	zeros     bool       // it is encoded with members that are zero
	wide      bool       // all of its integers have 64 bits
	text      string
}

// namedTypes are the types of a client.
type namedTypes struct {
	list     []*namedType // in the order of the document
	bySchema map[any][]*namedType
	byName   map[string]*namedType // with the package
}

// readTypes reads the types that an extension names. Without a package, a name is in pkg.
func readTypes(d *document, extension, pkg string) (*namedTypes, error) {
	types := &namedTypes{bySchema: map[any][]*namedType{}, byName: map[string]*namedType{}}
	add := func(name string, options, schema node, query *operation) *namedType {
		typ := &namedType{
			pkg: pkg, name: name, schema: schema, query: query, without: options.at("without").texts(), embed: options.at("embed").text(),
			pointers: options.at("pointers").text() == "true", required: options.at("required").texts(),
			open: options.at("open").text() == "true", zeros: options.at("zeros").text() == "true",
			wide: options.at("wide").text() == "true", text: options.at("text").text(),
		}
		if other, rest, found := strings.Cut(name, "."); found {
			typ.pkg, typ.name = other, rest
		}
		if typ.text == "" {
			typ.text = schema.at("description").text()
		}
		return typ
	}
	d.walk(func(n node) {
		names := n.at(extension)
		if n.at("operationId").text() != "" {
			return
		}
		for name, options := range names.members() {
			typ := add(name, options, n, nil)
			types.bySchema[n.Node] = append(types.bySchema[n.Node], typ)
			if options.at("known").text() != "true" {
				types.list = append(types.list, typ)
			}
		}
	})
	for _, o := range d.operations {
		for name, options := range o.at(extension + "-query").members() {
			types.list = append(types.list, add(name, options, node{}, o))
		}
	}
	for _, typ := range types.list {
		if other := types.byName[typ.pkg+"."+typ.name]; other != nil {
			return nil, fmt.Errorf("two schemas have the type %s.%s", typ.pkg, typ.name)
		}
		types.byName[typ.pkg+"."+typ.name] = typ
	}
	return types, nil
}

// find returns the type with a name in a package, or with the package in its name.
func (t *namedTypes) find(name, pkg string) *namedType {
	if strings.Contains(name, ".") {
		return t.byName[name]
	}
	return t.byName[pkg+"."+name]
}

// in returns the name of the type in a package.
func (typ *namedType) in(pkg string) string {
	if typ.pkg == pkg {
		return typ.name
	}
	return typ.pkg + "." + typ.name
}

// name returns the name of the type that a schema has, in a package, or "".
func (t *namedTypes) name(schema node, pkg string) string {
	list := t.bySchema[schema.value().Node]
	if len(list) == 0 {
		return ""
	}
	for _, typ := range list {
		if typ.pkg == pkg {
			return typ.name
		}
	}
	return list[0].in(pkg)
}

// members returns the members of the type, also those of the type that it embeds.
func (typ *namedType) members() (list []member) {
	all := typ.schema.properties
	if typ.query != nil {
		all = typ.query.query
	}
	for _, m := range all() {
		if !slices.Contains(typ.without, m.name) {
			m.required = m.required || slices.Contains(typ.required, m.name)
			list = append(list, m)
		}
	}
	return list
}
