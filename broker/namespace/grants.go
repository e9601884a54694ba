package namespace

import (
	"errors"
	"fmt"
	"strings"

	"switchboard/internal/wire"
)

// MaxGrants is how many channels and patterns one token may grant.
const MaxGrants = 128

// Grants are the channels that a token opens to its bearer. The zero value opens none.
type Grants struct {
	list []grant // a handful: walking them costs less than a map, in time and in memory
}

type grant struct {
	name   string // of a channel, or what stands before the *
	prefix bool
	may    Action
}

// Add grants actions, as words with spaces between them, on a channel or on a pattern.
func (g *Grants) Add(name, actions string) error {
	if len(g.list) == MaxGrants {
		return fmt.Errorf("more than %d channels are granted", MaxGrants)
	}
	prefix, isPattern, err := parsePattern(name)
	if err != nil {
		return err
	}
	may, err := parseActions(actions)
	if err != nil {
		return fmt.Errorf("%.40q: %w", name, err)
	}
	g.list = append(g.list, grant{prefix, isPattern, may})
	return nil
}

// Empty says whether nothing is granted.
func (g Grants) Empty() bool { return len(g.list) == 0 }

// allow says whether one of the grants opens the channel for the action.
func (g Grants) allow(do Action, channel string) bool {
	for _, one := range g.list {
		if one.may&do != 0 && one.fits(channel) {
			return true
		}
	}
	return false
}

func (g grant) fits(channel string) bool {
	if g.prefix {
		return below(g.name, channel)
	}
	return g.name == channel
}

// below says whether channel lies behind the prefix of a pattern: something must stand there, and what
// is behind an empty prefix is every channel but the system's own.
func below(prefix, channel string) bool {
	return len(channel) > len(prefix) && strings.HasPrefix(channel, prefix) && wire.IsSystem(prefix) == wire.IsSystem(channel)
}

// parsePattern reads "news", "chat:*" or "*": the prefix of a pattern ends with a colon, so that chat* cannot
// open chatroom by mistake.
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
		return "", false, wording(err)
	}
	return prefix, isPattern, nil
}

// wording is a refusal without its code, which belongs to the protocol.
func wording(err error) error {
	if refusal, ok := errors.AsType[*wire.Error](err); ok {
		return errors.New(refusal.Message)
	}
	return err
}
