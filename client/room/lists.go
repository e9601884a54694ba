package room

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"

	"switchboard/client"
)

// List returns a page of public rooms.
func (r *Rooms) List(ctx context.Context, o ListOptions) (p Page, err error) {
	err = r.client.Call(ctx, "room.list", o, &p)
	return p, err
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
