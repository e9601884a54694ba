package room

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"switchboard/janitor/task"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/queue"
)

// Check computes the cards of all rooms again, from their channels, with the lists of users, and
// the lobbies from the cards. It finds cards and lobbies that differ. Each difference lasts for
// some seconds after a change.
func Check(o kit.CheckOptions) task.Check {
	return kit.Check("rooms", func(ctx context.Context, f *kit.Findings) error {
		c := checker{CheckOptions: o, Findings: f}
		known, err := kit.EachBatch(ctx, o.States, map[string]kit.Visit{channelPrefix: c.compare, lobbyPrefix: c.addLobbies})
		if err == nil {
			err = kit.EachUnknown(ctx, o.Index, orderCreated, channelPrefix, known, c.compare) // a room may be new
		}
		if err == nil {
			err = c.checkLobbies(ctx)
		}
		return err
	})
}

// checker is one look of a check.
type checker struct {
	kit.CheckOptions
	*kit.Findings
	lobbies []string // the names of those that have a state, or rooms
}

func (c *checker) report(channel, problem string) {
	c.Add(channel, "brokers correct it within a minute; if it stays, look at their logs", "%s", problem)
}

// addLobbies adds lobbies that have a state.
func (c *checker) addLobbies(_ context.Context, names []string) error {
	c.lobbies = append(c.lobbies, names...)
	return nil
}

// compare compares rooms with their cards.
func (c *checker) compare(ctx context.Context, ids []string) error {
	stored, err := c.Index.Get(ctx, ids...)
	if err != nil {
		return err
	}
	for i, l := range lookAt(ctx, c.States, ids) {
		if l.err != nil {
			return l.err
		}
		if problem := differs(stored[i], l.indexCard(stored[i])); problem != "" {
			c.report(Channel(l.id), problem)
		}
		if l.ended != nil {
			c.report(Channel(l.id), "its end was not sent to the backend")
		}
		if doc, err := parseCard(stored[i]); err == nil && doc.joinable() {
			c.lobbies = append(c.lobbies, lobbies(&doc.Room)...)
		}
	}
	return nil
}

// differs says how a card differs from the stored one, or returns "". Only the time of the last
// activity may be older.
func differs(stored, card index.Card) string {
	switch {
	case stored.ID == "" && len(card.Lists) == 0:
		return ""
	case stored.ID == "":
		return "it has no card"
	case len(card.Lists) == 0:
		return "it has a card, but there is no room"
	}
	a, errA := parseCard(stored)
	b, errB := parseCard(card)
	a.LastActivity, b.LastActivity = 0, 0
	if errA != nil || errB != nil || !bytes.Equal(kit.JSON(a), kit.JSON(b)) {
		return "its card differs from the room"
	}
	if list := differentList(stored.Lists, card.Lists); list != "" {
		return fmt.Sprintf("the list %s is not as the room is", list)
	}
	return ""
}

// differentList returns the first list that only one of two cards is in, or with other scores.
func differentList(a, b map[string]int64) string {
	all := maps.Clone(a)
	maps.Copy(all, b)
	first := ""
	for list := range all {
		scoreA, inA := a[list]
		scoreB, inB := b[list]
		same := inA && inB && (scoreA == scoreB || strings.HasPrefix(list, orderActivity) || list == listEmpty)
		if !same && (first == "" || list < first) {
			first = list
		}
	}
	return first
}

// checkLobbies compares the lobbies with the cards.
func (c *checker) checkLobbies(ctx context.Context) error {
	slices.Sort(c.lobbies)
	for _, lobby := range slices.Compact(c.lobbies) {
		page, err := kit.ReadState(ctx, c.States, queue.StateRead{Channel: lobbyPrefix + lobby, Prefix: groupLobby})
		if err != nil {
			return err
		}
		newest, err := newestRooms(ctx, c.Index, lobby)
		if err != nil {
			return err
		}
		for _, f := range page.Fields {
			id := strings.TrimPrefix(f.Name, groupLobby)
			card, found := newest[id]
			switch {
			case !found:
				c.report(lobbyPrefix+lobby, fmt.Sprintf("it shows room %s, which is not one of the newest that can be joined", id))
			case !sameLobbyCard(f.Value, lobbyValue(card)):
				c.report(lobbyPrefix+lobby, fmt.Sprintf("it shows room %s as it is not", id))
			}
			delete(newest, id)
		}
		for id := range newest {
			c.report(lobbyPrefix+lobby, "it does not show room "+id)
		}
	}
	return nil
}

// Restore returns a round of a janitor that makes the brokers compute again the lobbies, and the
// cards of rooms without one, see [kit.Restore].
func Restore(o kit.CheckOptions) task.Round {
	return kit.Restore(o, kit.Restored{
		Name: "rooms", Prefix: channelPrefix, In: dueAfter,
		Other: func(ctx context.Context, channel string) error {
			lobby, found := strings.CutPrefix(channel, lobbyPrefix)
			if !found {
				return nil
			}
			return o.Index.Schedule(ctx, lobbyRefresh, lobbyTask+lobby)
		},
	})
}
