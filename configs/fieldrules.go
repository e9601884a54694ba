package configs

import (
	"errors"
	"strings"

	"go.yaml.in/yaml/v3"

	"switchboard/broker/namespace"
)

// fieldRules reads the section fields of a namespace, like
//
//	"member/{user}": {write: users, own: always, max: 4}
//	"seat/*": {write: claim, ttl: 10m}
//
// It checks each pattern with those before it, so that an error has its line.
func fieldRules(r *namespace.Rule, node *yaml.Node, section string) error {
	return each(node, section, func(pattern string, value *yaml.Node) error {
		f := namespace.FieldRule{Pattern: pattern}
		key := join(section, pattern)
		if err := each(value, key, func(name string, value *yaml.Node) error { return readFieldRule(&f, name, value) }); err != nil {
			return err
		}
		r.Fields = append(r.Fields, f)
		_, err := namespace.New([]namespace.Rule{{Name: r.Name, Fields: r.Fields}})
		if err == nil {
			return nil
		}
		problem, found := strings.CutPrefix(err.Error(), r.Name+": fields."+pattern+": ")
		if !found { // it is about the name of the namespace, and is reported with that
			return nil
		}
		return errors.New(problem)
	})
}

func readFieldRule(f *namespace.FieldRule, name string, value *yaml.Node) (err error) {
	switch name {
	case "write":
		var words []string
		if words, err = listOrText(value); err == nil {
			f.Write, err = namespace.ParseWrite(words...)
		}
	case "own":
		if f.Own = value.Value == "always"; !f.Own {
			return errors.New("want always, or no such key")
		}
	case "ttl":
		f.TTL, err = duration(value)
	case "max":
		f.Max, err = whole(value)
	case "bytes":
		f.Bytes, err = whole(value)
	case "of":
		f.Of, err = text(value)
	case "grace":
		f.Grace, err = durationOr(value, "never", namespace.GraceNever)
	default:
		return unknownKey("write", "own", "ttl", "max", "bytes", "of", "grace")
	}
	return err
}
