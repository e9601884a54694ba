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

// String returns the configuration key of the action in a namespace.
func (a Action) String() string {
	switch a {
	case Subscribe:
		return "subscribe"
	case Publish:
		return "publish"
	case Presence:
		return "presence"
	case History:
		return "history"
	case State:
		return "state"
	case Write:
		return "write"
	case Durable:
		return "durable"
	}
	return "nothing"
}

// parseActions parses the value of a grant: words separated by spaces, like the scope of OAuth
// (RFC 6749 §3.3), or * for all actions.
func parseActions(text string) (Action, error) {
	var sum Action
	for word := range strings.FieldsSeq(text) {
		switch word {
		case "sub":
			sum |= Subscribe
		case "pub":
			sum |= Publish
		case "presence":
			sum |= Presence
		case "history":
			sum |= History
		case "state":
			sum |= State
		case "write":
			sum |= Write
		case "durable":
			sum |= Durable
		case "*":
			sum |= allActions
		default:
			return 0, fmt.Errorf("%.20q is none of sub, pub, presence, history, state, write, durable and *", word)
		}
	}
	if sum == 0 {
		return 0, fmt.Errorf("it grants nothing; want sub, pub, presence, history, state, write, durable or *")
	}
	return sum, nil
}
