package apigen

import (
	"fmt"
	"regexp"
	"strings"
)

// signature is a method of a client.
type signature struct {
	owner, name string
	generic     string // type parameters, such as <Data = Json>
	arguments   []argument
	// result is the type of the result, "" for that of the answer, "-" for none, or the member of
	// the answer that the method returns, such as .rooms.
	result  string
	columns []string // of a list that a command prints
	text    string
}

// argument is an argument of a method, besides the names in the path.
type argument struct {
	name   string // of the argument
	kind   string // what it sends: body, query, and so on, or the name of a member
	typ    string // "" for that of the document
	many   bool   // it is variadic
	always bool   // it is sent if it is zero, too
}

// signaturePattern splits a signature.
var signaturePattern = regexp.MustCompile(`^(?:(\w+)\.)?(\w+)(<[^>]*>)?\((.*)\)\s*(\S*)$`)

// parseSignature parses the signature of a method, such as Rooms.Reserve(users, ttl) .numbers. The
// names in the path come first, and are not in it. An argument is
//
//   - body T, the body, and name=body T with another name; query T, all parameters of the query;
//     page, those of a page; with -name in the place of T, a member is left out
//   - version, the version of a condition
//   - options T..., the body, which is optional
//   - ttl, a duration, which is sent as ttl_ms
//   - the name of a parameter or of a member of the body; an exclamation mark after it means that
//     it is sent if it is zero, too; three dots mean that the argument is variadic
//
// The result is the answer, unless another type, a member of the answer or - for none follows.
func parseSignature(text string) (s signature, err error) {
	parts := signaturePattern.FindStringSubmatch(text)
	if parts == nil {
		return s, fmt.Errorf("%q is no signature of a method", text)
	}
	s = signature{owner: parts[1], name: parts[2], generic: parts[3], result: parts[5]}
	for item := range strings.SplitSeq(parts[4], ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		var a argument
		item, a.many = strings.CutSuffix(item, "...")
		item, a.always = strings.CutSuffix(item, "!")
		a.kind, a.typ, _ = strings.Cut(item, " ")
		if name, kind, found := strings.Cut(a.kind, "="); found {
			a.name, a.kind = name, kind
		} else {
			a.name = a.kind
		}
		s.arguments = append(s.arguments, a)
	}
	return s, nil
}

// signatures returns the methods of an extension, such as x-go, of an operation.
func (o *operation) signatures(extension string) (list []signature, err error) {
	n := o.at(extension)
	entries := n.items()
	if len(entries) == 0 && !n.none() {
		entries = []node{n}
	}
	for _, entry := range entries {
		text, own := entry.text(), ""
		var columns []string
		for name, value := range entry.members() {
			text, own, columns = name, value.text(), value.at("columns").texts()
			if own == "" {
				own = value.at("text").text()
			}
		}
		s, err := parseSignature(text)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", o.id, err)
		}
		s.columns = columns
		if s.text = own; own == "" {
			s.text = o.text()
		}
		list = append(list, s)
	}
	return list, nil
}
