package namespace

import (
	"errors"
	"fmt"
	"strings"

	"switchboard/internal/wire"
)

// MaxGrants is the most channels and patterns that one token may grant.
const MaxGrants = 128

// Grants are the channels that a token opens to its bearer. The zero value opens none.
type Grants struct {
	list []grant // few, so a slice costs less time and memory than a map
}

type grant struct {
	name      string // a channel's name, or the prefix before the *
	isPattern bool
	actions   Action
}

// Add grants actions on a channel or a pattern. actions are words separated by spaces.
func (g *Grants) Add(name, actions string) error {
	if len(g.list) == MaxGrants {
		return fmt.Errorf("more than %d channels are granted", MaxGrants)
	}
	prefix, isPattern, err := parsePattern(name)
	if err != nil {
		return err
	}
	granted, err := parseActions(actions)
	if err != nil {
		return fmt.Errorf("%.40q: %w", name, err)
	}
	g.list = append(g.list, grant{prefix, isPattern, granted})
	return nil
}

// Empty reports whether nothing is granted.
func (g Grants) Empty() bool { return len(g.list) == 0 }

// allows reports whether one of the grants allows the action on the channel.
func (g Grants) allows(action Action, channel string) bool {
	for _, one := range g.list {
		if one.actions&action != 0 && one.matches(channel) {
			return true
		}
	}
	return false
}

func (g grant) matches(channel string) bool {
	if g.isPattern {
		return matchesPrefix(g.name, channel)
	}
	return g.name == channel
}

// matchesPrefix reports whether channel begins with the prefix of a pattern and is longer. The
// empty prefix matches every channel but the system channels.
func matchesPrefix(prefix, channel string) bool {
	return len(channel) > len(prefix) && strings.HasPrefix(channel, prefix) && wire.IsSystem(prefix) == wire.IsSystem(channel)
}

// parsePattern parses "news", "chat:*" or "*". For a name without * the prefix is the whole name.
// The prefix of a pattern must end with a colon, so that chat* does not open chatroom by mistake.
func parsePattern(text string) (prefix string, isPattern bool, err error) {
	prefix, isPattern = strings.CutSuffix(text, "*")
	switch {
	case strings.Contains(prefix, "*"):
		return "", false, fmt.Errorf("%.40q: a * may stand at the end only", text)
	case isPattern && prefix == "":
		return "", true, nil
	case isPattern && !strings.HasSuffix(prefix, ":"):
		return "", false, fmt.Errorf("%.40q: a colon belongs before the *", text)
	}
	if err := wire.CheckName("channel", prefix); err != nil {
		return "", false, messageOf(err)
	}
	return prefix, isPattern, nil
}

// messageOf returns err without the code of a *wire.Error.
func messageOf(err error) error {
	if wireErr, ok := errors.AsType[*wire.Error](err); ok {
		return errors.New(wireErr.Message)
	}
	return err
}
