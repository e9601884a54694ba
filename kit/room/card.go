package room

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"switchboard/internal/state"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/queue"
)

// Card is a room in a list: the document and what the list needs of the members.
type Card struct {
	ID string `json:"id"`
	// Version is the id of the last change of the document, for a patch.
	Version int64 `json:"version"`
	// Room is the document, without Data of more than MaxCardData.
	Room Room `json:"room"`
	// DataOmitted is set if the room has such Data. A get of the room returns it.
	DataOmitted bool `json:"data_omitted,omitempty"`
	Members     int  `json:"members"` // without reservations
	// Reserved is the number of reservations. Capacity - Members - Reserved places are free.
	Reserved int `json:"reserved,omitempty"`
	Owner    int `json:"owner,omitempty"` // the number of the owner, if there is a member
	// LastActivity is the time of the last change of the channel, Unix ms. It is up to a minute
	// old for changes of fields. The lobby does not have it.
	LastActivity int64 `json:"last_activity,omitempty"`
}

// MaxCardData is the most bytes of Room.Data in a card.
const MaxCardData = 1 << 10

// Free returns the number of free places.
func (c *Card) Free() int { return c.Room.Capacity - c.Members - c.Reserved }

// joinable reports whether a user without the code of the room could join.
func (c *Card) joinable() bool {
	return c.Room.Visibility == Public && c.Room.Status != Finished && !c.Room.Locked && c.Free() > 0
}

// card returns the card of a room.
func (s *Snapshot) card() Card {
	n := s.counts()
	c := Card{
		ID: s.ID, Version: s.Version, Room: s.Room, Members: n.Members, Reserved: n.Reserved, Owner: s.Owner,
		LastActivity: queue.TimeOf(s.At).UnixMilli(),
	}
	if len(c.Room.Data) > MaxCardData {
		c.Room.Data, c.DataOmitted = nil, true
	}
	return c
}

// look is what a read has found in the channel of a room.
type look struct {
	id       string
	snapshot *Snapshot // nil if there is no room
	// version is the version of the card. It grows with the state and with the time, because a
	// lease that ends changes the members and no id.
	version int64
	clock   int64             // the store's clock, Unix ms
	ended   *queue.NamedField // $$ended, or nil
	err     error
}

// lookAt reads rooms in one round trip.
func lookAt(ctx context.Context, states kit.StateReader, ids []string) []look {
	pages := states.ReadStates(ctx, readsOf(ids))
	looks := make([]look, len(ids))
	for i, id := range ids {
		looks[i] = newLook(id, pages[2*i], pages[2*i+1])
	}
	return looks
}

// newLook returns the look of two pages. If the room has changed between them, its card is a
// mixture with the version of the older one: the change is followed by another look.
func newLook(id string, backend, members queue.Outcome[queue.StatePage]) look {
	l := look{id: id}
	if l.snapshot, l.err = newSnapshot(id, backend, members); l.err != nil {
		l.err = fmt.Errorf("read room %s: %w", id, l.err)
		return l
	}
	l.clock = min(backend.Value.Clock, members.Value.Clock)
	l.version = max(min(backend.Value.ID, members.Value.ID), queue.IDAt(time.UnixMilli(l.clock)))
	for i, f := range backend.Value.Fields {
		if f.Name == fieldEnded {
			l.ended = &backend.Value.Fields[i]
		}
	}
	return l
}

// indexCard returns the card for the index. old is the stored one.
func (l *look) indexCard(old index.Card) index.Card {
	c := index.Card{ID: l.id, Version: l.version}
	if l.snapshot != nil {
		card := l.snapshot.card()
		c.Data, c.Lists = kit.JSON(card), l.snapshot.lists(&card)
		if len(l.snapshot.Members) == 0 {
			c.Lists[listEmpty] = l.emptySince(old)
		}
	}
	return c
}

// emptySince returns since when a room without members is empty, Unix ms: since the first look
// that saw it. A counter that is newer than that tells that there was a member in between.
func (l *look) emptySince(old index.Card) int64 {
	since, found := old.Lists[listEmpty]
	if !found {
		return l.clock
	}
	return max(since, queue.TimeOf(l.snapshot.nextID).UnixMilli())
}

// The orders of lists. The score of a card is the time, Unix ms.
const (
	orderCreated  = "created"
	orderStarted  = "started"
	orderEnded    = "ended"
	orderActivity = "activity"
)

// The names of lists that are no answers to queries.
const (
	listEmpty = "empty" // rooms without members, by the time since which they are empty
	openLists = "open"  // joinable rooms of a lobby, by creation: open/LOBBY
	waitLists = "wait"  // joinable rooms that have not started, by creation: wait/LOBBY; see also index.PlacesList
	userLists = "user"  // rooms of a user, by the time of the join: user/USER
	fillLists = "fill"  // rooms of a mode with a number of members: fill/MODE/MEMBERS
)

// attributes are what selects rooms. "" means any value.
type attributes struct {
	visibility, mode, status, region, owner string
}

// lists returns the lists of a room, with its scores.
func (s *Snapshot) lists(c *Card) map[string]int64 {
	lists := map[string]int64{}
	doc, owner := &s.Room, ""
	if m := s.member(s.Owner); m != nil {
		owner = m.User
	}
	all := attributes{string(doc.Visibility), doc.Mode, string(doc.Status), doc.Region, owner}
	for order, time := range map[string]int64{
		orderCreated: doc.Created, orderStarted: doc.Started, orderEnded: doc.Finished, orderActivity: c.LastActivity,
	} {
		for _, kind := range listKinds {
			if list, ok := kind.name(order, all); ok && time > 0 {
				lists[list] = time
			}
		}
	}
	for _, m := range s.Members {
		if m.User != "" { // else the member has come between the two reads
			lists[userList(m.User)] = max(m.Joined, doc.Created)
		}
	}
	lists[fillList(doc.Mode, c.Members)] = doc.Created
	if c.joinable() {
		for _, lobby := range lobbies(doc) {
			lists[openLists+"/"+lobby] = doc.Created
		}
		if doc.Status == Waiting {
			for _, list := range waitingLists(doc) {
				lists[list] = doc.Created
			}
			lists[index.PlacesList] = int64(c.Free())
		}
	}
	return lists
}

// waitingLists returns the lists of a room that quick joins fill.
func waitingLists(doc *Room) []string {
	list := lobbies(doc)
	for i := range list {
		list[i] = waitLists + "/" + list[i]
	}
	return list
}

func userList(user string) string { return userLists + "/" + short(state.Escape(user)) }

func fillList(mode string, members int) string {
	return fillLists + "/" + mode + "/" + strconv.Itoa(members)
}

// short returns a text that fits in the name of a list: the text, or its hash if it is long.
func short(text string) string {
	if len(text) <= 100 {
		return text
	}
	sum := sha256.Sum256([]byte(text))
	return "%" + hex.EncodeToString(sum[:16]) // no escaped text begins with % and a hash of this length
}

// parseCard parses the data of a card.
func parseCard(c index.Card) (card Card, err error) {
	if err = json.Unmarshal(c.Data, &card); err != nil {
		err = fmt.Errorf("card of room %s: %w", c.ID, err)
	}
	return card, err
}
