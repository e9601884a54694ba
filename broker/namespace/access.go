package namespace

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Access is the set of clients that may do an action. The zero value has no clients, so an action
// that a namespace does not mention is closed.
type Access uint8

// The parts of an Access.
const (
	BackendOnly Access = 0         // no clients, only the backend
	Anyone      Access = 1 << iota // all clients, with or without a token
	Users                          // clients whose token names a user
	Grant                          // clients whose token grants the action on the channel
	Named                          // the user named in the channel's name, as in inbox:{user}
	// Claim is for fields only: every user may write an absent field, then only its holder may.
	Claim
)

var accessWords = []struct {
	word   string
	access Access
}{{"anyone", Anyone}, {"users", Users}, {"named", Named}, {"grant", Grant}, {"claim", Claim}}

// ParseAccess parses the words of a rule. The Access is their union.
func ParseAccess(words ...string) (Access, error) {
	var sum Access
	backendOnly := false
next:
	for _, word := range words {
		if word == "nobody" {
			backendOnly = true
			continue
		}
		for _, known := range accessWords {
			if known.word == word && known.access != Claim {
				sum |= known.access
				continue next
			}
		}
		return 0, fmt.Errorf("%.20q is none of anyone, named, grant, users and nobody", word)
	}
	if len(words) == 0 || backendOnly && sum != 0 {
		return 0, errors.New(`want anyone, users, named and grant in any combination, or only "nobody"`)
	}
	return sum, nil
}

// ParseWrite parses the words of a field rule: "claim", or those of ParseAccess.
func ParseWrite(words ...string) (Access, error) {
	if slices.Contains(words, "claim") {
		if len(words) > 1 {
			return 0, errors.New("claim cannot be combined with other words")
		}
		return Claim, nil
	}
	sum, err := ParseAccess(words...)
	if err != nil {
		return 0, fmt.Errorf("%w, and it is not claim", err)
	}
	return sum, nil
}

// String returns the words, joined by "or".
func (a Access) String() string {
	var words []string
	for _, known := range accessWords {
		if a&known.access != 0 {
			words = append(words, known.word)
		}
	}
	if len(words) == 0 {
		return "nobody"
	}
	return strings.Join(words, " or ")
}
