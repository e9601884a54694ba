package room

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"switchboard/broker/extension"
	"switchboard/broker/namespace"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/queue"
)

// A lobby is a channel with one field room/{id} for each of the newest joinable public rooms of a
// mode, or of a mode in one region. A field holds a [LobbyCard].

// The bounds of a lobby. A client reads all of it at once, and the bytes count for its rate.
const (
	MaxLobby      = 1000      // rooms
	MaxLobbyBytes = 512 << 10 // bytes of the fields
	// lobbyFill is how far a comparison fills a lobby: cards grow when players join.
	lobbyFill = MaxLobbyBytes / 8 * 7
)

// lobbyUpdate returns an update that the store refuses if the lobby becomes too large.
func lobbyUpdate() *state.Update {
	return &state.Update{Writer: state.BackendHolder, Limits: state.Limits{Bytes: MaxLobbyBytes}}
}

const (
	lobbyPrefix = "lobby:"
	groupLobby  = "room/"
)

// lobbyRefresh is how often a lobby is compared with the list of its rooms. It is below the lease
// of a task, see index.Schedule.
const lobbyRefresh = 5 * time.Second

// LobbyChannel returns the channel of a lobby. An empty region means the rooms of all regions.
func LobbyChannel(mode, region string) string { return lobbyPrefix + lobbyName(mode, region) }

func lobbyName(mode, region string) string {
	if region == "" {
		return mode
	}
	return mode + ":" + region
}

// lobbies returns the names of the lobbies for a room.
func lobbies(doc *Room) []string {
	if doc.Region == "" {
		return []string{lobbyName(doc.Mode, "")}
	}
	return []string{lobbyName(doc.Mode, ""), lobbyName(doc.Mode, doc.Region)}
}

// LobbyCard is a card in a lobby. At is the version of the card: a field never goes back to a
// lower one.
type LobbyCard struct {
	Card
	At int64 `json:"at"`
}

// lobbyKind returns the channels of lobbies.
func lobbyKind() extension.ChannelKind {
	return extension.ChannelKind{Rule: namespace.Rule{
		Name: lobbyPrefix + "*", Subscribe: namespace.Users, State: namespace.Users, History: namespace.Users,
		NoPresence: true, StateKeep: namespace.KeepForever,
	}}
}

// lobbyEntry is a room that a lobby has, or shall not have.
type lobbyEntry struct {
	id      string
	version int64
	value   []byte // nil if the lobby shall not have it
}

// lobbyEntries returns what the lobbies shall have of a room. Those of the old card, which may be
// in another region, are included.
func lobbyEntries(old, c index.Card) map[string]lobbyEntry {
	entries := map[string]lobbyEntry{}
	for list := range old.Lists {
		if lobby, found := strings.CutPrefix(list, openLists+"/"); found {
			entries[lobby] = lobbyEntry{c.ID, c.Version, nil}
		}
	}
	for list := range c.Lists {
		if lobby, found := strings.CutPrefix(list, openLists+"/"); found {
			entries[lobby] = lobbyEntry{c.ID, c.Version, lobbyValue(c)}
		}
	}
	return entries
}

func lobbyValue(c index.Card) []byte {
	card, err := parseCard(c)
	if err != nil {
		return nil
	}
	card.LastActivity = 0
	return kit.JSON(LobbyCard{card, c.Version})
}

// syncLobbies makes the lobbies show cards that were stored. A writer that was slow may show an
// old card; it therefore reads the cards again after the write, and repeats it if there are newer
// ones.
func (r *Rooms) syncLobbies(ctx context.Context, old, cards []index.Card) error {
	for range kit.MaxAttempts {
		byLobby := map[string][]lobbyEntry{}
		ids := make([]string, len(cards))
		for i, c := range cards {
			ids[i] = c.ID
			for lobby, e := range lobbyEntries(old[i], c) {
				byLobby[lobby] = append(byLobby[lobby], e)
			}
		}
		wrote := false
		for lobby, entries := range byLobby {
			did, err := r.writeLobby(ctx, lobby, entries)
			if err != nil {
				return err
			}
			wrote = wrote || did
		}
		if !wrote {
			return nil
		}
		stored, err := r.index.Get(ctx, ids...)
		if err != nil {
			return err
		}
		var newerOld, newer []index.Card
		for i, c := range stored {
			if c.Version > cards[i].Version || c.ID == "" && len(cards[i].Lists) > 0 {
				c.ID, c.Version = ids[i], max(c.Version, cards[i].Version+1)
				newerOld, newer = append(newerOld, cards[i]), append(newer, c)
			}
		}
		if old, cards = newerOld, newer; len(cards) == 0 {
			return nil
		}
	}
	return nil // the next look at the lobby finds the difference
}

// writeLobby changes the fields of a lobby that differ from the entries, in one update, and reports
// whether there were any. Entries that do not fit, or whose fields change too often meanwhile, are
// left to refreshLobby.
func (r *Rooms) writeLobby(ctx context.Context, lobby string, entries []lobbyEntry) (wrote bool, err error) {
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = groupLobby + e.id
	}
	full, noted := false, false
	wrote, err = kit.Retry(ctx, "lobby "+lobby, func() (bool, error) {
		fields, err := r.host.ReadState(ctx, lobbyPrefix+lobby, names...)
		if err != nil {
			return false, fmt.Errorf("read lobby %s: %w", lobby, err)
		}
		u := lobbyUpdate()
		for i, e := range entries {
			if field := fields[names[i]]; field != nil || !full {
				addLobbyOp(u, names[i], field, e)
			}
		}
		if len(u.Ops) == 0 {
			return false, nil
		}
		if !noted { // scheduled first, as for rooms
			if err := r.index.Schedule(ctx, lobbyRefresh, lobbyTask+lobby); err != nil {
				return false, err
			}
			noted = true
		}
		_, err = r.host.Change(ctx, lobbyPrefix+lobby, u, extension.ChangeOptions{})
		refusal, isRefused := errors.AsType[*state.Refusal](err)
		switch {
		case err == nil:
			return true, nil
		case !isRefused:
			return false, fmt.Errorf("change lobby %s: %w", lobby, err)
		}
		if refusal.Err.Code == wire.TooLarge && full {
			return false, nil // the cards in the lobby have grown
		}
		full = full || refusal.Err.Code == wire.Full || refusal.Err.Code == wire.TooLarge
		return false, kit.ErrChanged
	})
	if errors.Is(err, kit.ErrContended) {
		return false, nil
	}
	return wrote, err
}

// addLobbyOp adds the operation that makes a field show an entry, unless it does, or shows a newer
// version.
func addLobbyOp(u *state.Update, name string, field *state.Field, e lobbyEntry) {
	var id int64
	if field != nil {
		if id = field.ID; lobbyVersion(field.Value) > e.version || sameLobbyCard(field.Value, e.value) {
			return
		}
	} else if e.value == nil {
		return
	}
	op := kit.Delete(name)
	if e.value != nil {
		op = state.Op{Field: name, Kind: state.Set, Value: e.value, GroupMax: MaxLobby}
	}
	u.Ops = append(u.Ops, op)
	u.If = append(u.If, kit.Same(name, id))
}

// refreshLobby compares a lobby with the newest of its joinable rooms. It returns whether the
// lobby has rooms.
func (r *Rooms) refreshLobby(ctx context.Context, lobby string) (used bool, err error) {
	fields, err := r.host.ReadGroup(ctx, lobbyPrefix+lobby, groupLobby)
	if err != nil {
		return true, fmt.Errorf("read lobby %s: %w", lobby, err)
	}
	// Read after the fields: a field that is newer than the list stays until the next time.
	newest, err := newestRooms(ctx, r.index, lobby)
	if err != nil {
		return true, err
	}
	if len(newest) == 0 && len(fields) == 0 {
		return false, nil
	}
	remove, add := lobbyUpdate(), lobbyUpdate()
	shown := map[string]queue.NamedField{}
	for _, f := range fields {
		shown[f.Name] = f
		if _, found := newest[strings.TrimPrefix(f.Name, groupLobby)]; !found {
			remove.Ops = append(remove.Ops, kit.Delete(f.Name))
			remove.If = append(remove.If, kit.Same(f.Name, f.ID))
		}
	}
	for id, c := range newest {
		name := groupLobby + id
		addLobbyOp(add, name, shown[name].Field, lobbyEntry{id, c.Version, lobbyValue(c)})
	}
	for _, u := range []*state.Update{remove, add} {
		if len(u.Ops) == 0 {
			continue
		}
		_, err := r.host.Change(ctx, lobbyPrefix+lobby, u, extension.ChangeOptions{})
		if _, refused := errors.AsType[*state.Refusal](err); err != nil && !refused {
			return true, fmt.Errorf("change lobby %s: %w", lobby, err)
		}
	}
	return true, nil
}

// newestRooms returns the cards of the newest joinable rooms of a lobby that fit in it, by id.
func newestRooms(ctx context.Context, ix index.Index, lobby string) (map[string]index.Card, error) {
	q := index.Query{List: openLists + "/" + lobby, Descending: true, Limit: 250}
	newest, size := map[string]index.Card{}, 0
	for cards, err := range index.Pages(ctx, ix, q) {
		if err != nil {
			return nil, fmt.Errorf("list the rooms of lobby %s: %w", lobby, err)
		}
		for _, c := range cards {
			if size += len(groupLobby) + len(c.ID) + len(lobbyValue(c)); len(newest) == MaxLobby || size > lobbyFill {
				return newest, nil
			}
			newest[c.ID] = c
		}
	}
	return newest, nil
}

// lobbyVersion returns the version of a card in a lobby.
func lobbyVersion(value []byte) int64 {
	var c LobbyCard
	_ = json.Unmarshal(value, &c) // a value that is no card has the version 0
	return c.At
}

// sameLobbyCard reports whether two values differ at most in the version.
func sameLobbyCard(a, b []byte) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return string(withoutVersion(a)) == string(withoutVersion(b))
}

// withoutVersion returns the value without its version, which is the last member.
func withoutVersion(value []byte) []byte {
	return value[:max(0, bytes.LastIndex(value, []byte(`,"at":`)))]
}
