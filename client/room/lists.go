package room

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"switchboard/client"
)

// Card is a room in a list.
type Card struct {
	ID      string   `json:"id"`
	Version int64    `json:"version"`
	Room    Document `json:"room"`
	// DataOmitted is set if the room has more than 1 KiB of data, which a card does not have.
	DataOmitted bool `json:"data_omitted"`
	Members     int  `json:"members"`  // without reservations
	Reserved    int  `json:"reserved"` // reserved places
	Owner       int  `json:"owner"`    // number of the owner, 0 for none
	// LastActivity is the time of the last change, Unix ms. A lobby does not have it.
	LastActivity int64 `json:"last_activity"`
}

// ListOptions select public rooms. Zero values select all.
type ListOptions struct {
	Mode       string `json:"mode,omitempty"`
	Status     string `json:"status,omitempty"` // "waiting", "playing" or "finished"
	Region     string `json:"region,omitempty"`
	Visibility string `json:"visibility,omitempty"` // only "public"
	Free       int    `json:"free,omitempty"`       // least number of free places
	Order      string `json:"order,omitempty"`      // "created", "started", "ended" or "activity". Zero means created
	Desc       bool   `json:"desc,omitempty"`       // the latest first
	From       int64  `json:"from,omitempty"`       // bounds of the time of the order, Unix ms
	To         int64  `json:"to,omitempty"`
	Cursor     string `json:"cursor,omitempty"` // the Cursor of the previous page
	Limit      int    `json:"limit,omitempty"`  // at most 100. Zero means 100
}

// Page is a page of public rooms. It may have fewer rooms than the limit, even none, although
// there are more pages.
type Page struct {
	Rooms  []Card `json:"rooms"`
	Cursor string `json:"cursor"` // of the next page, "" for the last one
	Next   string `json:"next"`   // the former name of Cursor, with the same value
}

// List returns a page of public rooms.
func (r *Rooms) List(ctx context.Context, o ListOptions) (p Page, err error) {
	err = r.client.Call(ctx, "room.list", o, &p)
	return p, err
}

// QuickOptions select a room for Quick. Only Mode is required.
type QuickOptions struct {
	Mode     string `json:"mode"`
	Region   string `json:"region,omitempty"` // Zero means any
	Nickname string `json:"nickname,omitempty"`
	// Name, AppVersion and Data are those of a new room.
	Name       string          `json:"name,omitempty"`
	AppVersion string          `json:"app_version,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

// Quick makes the user a member of an open public room of the mode, or of a new one, and follows
// it.
func (r *Rooms) Quick(ctx context.Context, o QuickOptions) (*Room, error) {
	var joined struct {
		Room    string `json:"room"`
		Channel string `json:"channel"`
		N       int    `json:"n"`
	}
	if err := r.client.Call(ctx, "room.quick", o, &joined); err != nil {
		return nil, err
	}
	return r.follow(ctx, &Room{ID: joined.Room, Channel: joined.Channel, N: joined.N})
}

// Mine is a room that the user is in.
type Mine struct {
	Card
	Channel  string `json:"channel"`
	N        int    `json:"n"`        // the number of the user
	Reserved bool   `json:"reserved"` // the place is only reserved
	Away     bool   `json:"away"`
}

// MinePage is a page of the rooms of the user.
type MinePage struct {
	Rooms  []Mine `json:"rooms"`
	Cursor string `json:"cursor"` // of the next page, "" for the last one
	Next   string `json:"next"`   // the former name of Cursor, with the same value
}

// Mine returns the rooms that the user is in, and those with a reserved place. cursor is that of
// the previous page, or "".
func (r *Rooms) Mine(ctx context.Context, cursor string) (p MinePage, err error) {
	err = r.client.Call(ctx, "room.mine", map[string]string{"cursor": cursor}, &p)
	return p, err
}

// Lobby is the newest 1,000 public rooms of a mode that can be joined. The broker keeps it up to
// date.
type Lobby struct {
	Channel string
	client  *client.Client
}

// Lobby follows the rooms of a mode, in one region or, if region is "", in all. Changes arrive at
// the callbacks of the client, in [Lobby.Channel].
func (r *Rooms) Lobby(ctx context.Context, mode, region string) (*Lobby, error) {
	channel := "lobby:" + mode
	if region != "" {
		channel += ":" + region
	}
	if _, err := r.client.Subscribe(ctx, channel, client.SubscribeOptions{State: true}); err != nil {
		return nil, err
	}
	return &Lobby{channel, r.client}, nil
}

// Rooms returns the rooms, the newest first.
func (l *Lobby) Rooms() []Card {
	snapshot, _ := l.client.Fields(l.Channel)
	var cards []Card
	for name, f := range snapshot.Fields {
		var c Card
		if strings.HasPrefix(name, "room/") && json.Unmarshal(f.Value, &c) == nil {
			cards = append(cards, c)
		}
	}
	slices.SortFunc(cards, func(a, b Card) int {
		return cmp.Or(cmp.Compare(b.Room.Created, a.Room.Created), strings.Compare(a.ID, b.ID))
	})
	return cards
}
