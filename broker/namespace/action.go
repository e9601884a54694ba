package namespace

import (
	"fmt"
	"strings"
)

// Action is what somebody wants to do on a channel. Values are bits, so that a grant holds several.
type Action uint8

// The actions. Their words in a token are sub, pub, presence and history.
const (
	Subscribe Action = 1 << iota
	Publish
	Presence
	History

	all = Subscribe | Publish | Presence | History
)

// Actions are all of them, in the order in which they are told.
var Actions = []Action{Subscribe, Publish, Presence, History}

// String is the key of a namespace that rules the action.
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
	}
	return "nothing"
}

// parseActions reads the value of a grant: words with a space between them, as OAuth's scope
// (RFC 6749 §3.3), or * for all.
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
		case "*":
			sum |= all
		default:
			return 0, fmt.Errorf("%.20q is none of sub, pub, presence, history and *", word)
		}
	}
	if sum == 0 {
		return 0, fmt.Errorf("it grants nothing; sub, pub, presence, history or * is wanted")
	}
	return sum, nil
}
