package namespace

import (
	"fmt"
	"strings"
)

// Action is something that a client does on a channel. Values are bits, so that a grant holds
// several.
type Action uint8

// The actions. A token writes them as sub, pub, presence, history, state, write and durable.
const (
	Subscribe Action = 1 << iota
	Publish
	Presence
	History
	State // read the state
	Write // write fields; which ones, the field rules of a namespace say
	// Durable is to wait for a replica with a publish, in addition to the right to publish it.
	Durable

	allActions = Subscribe | Publish | Presence | History | State | Write | Durable
)

// Actions lists the actions on a channel as a whole, in the order of display.
var Actions = []Action{Subscribe, Publish, Presence, History, State, Durable}

// actionWords are the names of the actions in the configuration, and in grants.
var actionWords = []struct {
	action      Action
	name, grant string
}{
	{Subscribe, "subscribe", "sub"}, {Publish, "publish", "pub"}, {Presence, "presence", "presence"}, {History, "history", "history"},
	{State, "state", "state"}, {Write, "write", "write"}, {Durable, "durable", "durable"},
}

// String returns the configuration key of the action in a namespace.
func (a Action) String() string {
	for _, w := range actionWords {
		if w.action == a {
			return w.name
		}
	}
	return "nothing"
}

// parseActions parses the value of a grant: words separated by spaces, like the scope of OAuth
// (RFC 6749 §3.3), or * for all actions.
func parseActions(text string) (Action, error) {
	var sum Action
next:
	for word := range strings.FieldsSeq(text) {
		if word == "*" {
			sum |= allActions
			continue
		}
		for _, w := range actionWords {
			if w.grant == word {
				sum |= w.action
				continue next
			}
		}
		return 0, fmt.Errorf("%.20q is none of sub, pub, presence, history, state, write, durable and *", word)
	}
	if sum == 0 {
		return 0, fmt.Errorf("it grants nothing; want sub, pub, presence, history, state, write, durable or *")
	}
	return sum, nil
}
