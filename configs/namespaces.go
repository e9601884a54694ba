package configs

import (
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"

	"switchboard/broker/namespace"
)

// namespaces reads a section like
//
//	"chat:*":
//	  subscribe: grant
//	  publish: [named, grant]
//
// It checks each namespace separately, so that an error has its line.
func namespaces(node *yaml.Node) (*namespace.Set, error) {
	var rules []namespace.Rule
	err := each(node, "namespaces", func(name string, value *yaml.Node) error {
		r := namespace.Rule{Name: name}
		key := "namespaces." + name
		if err := each(value, key, func(name string, value *yaml.Node) error { return readRule(&r, key, name, value) }); err != nil {
			return err
		}
		if _, err := namespace.New([]namespace.Rule{r}); err != nil {
			return fmt.Errorf("%s", strings.TrimPrefix(err.Error(), name+": "))
		}
		rules = append(rules, r)
		return nil
	})
	if err != nil {
		return nil, err
	}
	set, err := namespace.New(rules)
	if err != nil {
		return nil, errorAt(node, "namespaces", err.Error())
	}
	return set, nil
}

// readRule reads one key of a namespace. section is the key of the namespace.
func readRule(r *namespace.Rule, section, name string, value *yaml.Node) (err error) {
	switch name {
	case "subscribe":
		r.Subscribe, err = access(value)
	case "publish":
		r.Publish, err = access(value)
	case "history":
		r.History, err = access(value)
	case "presence":
		if value.Value == "off" || value.Value == "false" {
			r.NoPresence = true
			return nil
		}
		r.Presence, err = access(value)
	case "history_messages":
		r.HistoryMessages, err = whole(value)
	case "history_age":
		r.HistoryAge, err = duration(value)
	case "message":
		r.Message, err = whole(value)
	case "publish_rate":
		r.PublishRate, err = positive(value)
	case "state":
		r.State, err = access(value)
	case "state_keep":
		r.StateKeep, err = durationOr(value, "forever", namespace.KeepForever)
	case "grace":
		r.Grace, err = durationOr(value, "never", namespace.GraceNever)
	case "durable":
		r.Durable, err = access(value)
	case "fields_gone":
		r.FieldsGone, err = boolean(value)
	case "needs":
		r.Needs, err = text(value)
	case "by":
		r.By, err = text(value)
	case "fields":
		return fieldRules(r, value, join(section, name))
	default:
		return unknownKey("subscribe", "publish", "presence", "history", "history_messages", "history_age", "message", "publish_rate",
			"state", "state_keep", "grace", "needs", "by", "durable", "fields", "fields_gone")
	}
	return err
}

// access reads the clients that may do something: one word, or a list.
func access(node *yaml.Node) (namespace.Access, error) {
	words, err := listOrText(node)
	if err != nil {
		return namespace.BackendOnly, err
	}
	return namespace.ParseAccess(words...)
}
