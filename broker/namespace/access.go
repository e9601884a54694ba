package namespace

import (
	"fmt"
	"strings"
)

// Access is a set of those for whom an action is open. The zero value is nobody, so that what a namespace
// does not mention is closed.
type Access uint8

// The words of a rule.
const (
	Nobody Access = 0         // the backend only
	Anyone Access = 1 << iota // also who connected without a token
	Users                     // whoever is a user
	Grant                     // whoever's token grants the action on the channel
	Named                     // the user whose name stands in the channel's, as in inbox:{user}
)

var accessWords = []struct {
	word string
	who  Access
}{{"anyone", Anyone}, {"users", Users}, {"named", Named}, {"grant", Grant}}

// ParseAccess reads the words of a rule; whoever fits one of them fits.
func ParseAccess(words ...string) (Access, error) {
	var sum Access
	nobody := false
next:
	for _, word := range words {
		if word == "nobody" {
			nobody = true
			continue
		}
		for _, known := range accessWords {
			if known.word == word {
				sum |= known.who
				continue next
			}
		}
		return 0, fmt.Errorf("%.20q is none of anyone, users, grant, named and nobody", word)
	}
	if len(words) == 0 || nobody && sum != 0 {
		return 0, fmt.Errorf("want anyone, users, grant, named or nobody, or several of the first four")
	}
	return sum, nil
}

// String is the words, as a person would join them.
func (w Access) String() string {
	var words []string
	for _, known := range accessWords {
		if w&known.who != 0 {
			words = append(words, known.word)
		}
	}
	if len(words) == 0 {
		return "nobody"
	}
	return strings.Join(words, " or ")
}
