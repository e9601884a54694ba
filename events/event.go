package events

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
)

// Kind is what an event tells, its "type".
type Kind string

// The kinds there are.
const (
	// UserOnline: the first client of a user connected, anywhere.
	UserOnline Kind = "user_online"
	// UserOffline: the last one went, and none came back within the grace.
	UserOffline Kind = "user_offline"
	// ChannelOccupied: a channel has its first subscriber.
	ChannelOccupied Kind = "channel_occupied"
	// ChannelVacated: it has none any more, since the grace.
	ChannelVacated Kind = "channel_vacated"
	// MessageUndelivered: no device has acknowledged a message in the time that its push gave.
	MessageUndelivered Kind = "message_undelivered"
)

// Kinds are all of them.
var Kinds = []Kind{UserOnline, UserOffline, ChannelOccupied, ChannelVacated, MessageUndelivered}

// CheckKinds names the first that is none.
func CheckKinds(kinds []Kind) error {
	for _, k := range kinds {
		if !slices.Contains(Kinds, k) {
			return fmt.Errorf("events: there is no %q, only %v", k, Kinds)
		}
	}
	return nil
}

// Place is where a message of a client's queue stands.
type Place struct {
	Client string `json:"client"`
	ID     int64  `json:"id"`
}

// Shards is how many lists events are spread over. It is the same in all processes and for ever: what one writes
// another reads.
const Shards = 16

// The sorts of entries on the due list; the letter stands in Redis.
const (
	userSort    = "u:"
	channelSort = "c:"
	watchSort   = "d:"
)

// shardOf spreads by name. A user's own changes and the messages to him are in one, so that they are in order.
func shardOf(scope, name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(scope))
	_, _ = h.Write([]byte(name))
	return int(h.Sum32() % Shards)
}

// body is an event without its id and time, which the store gives: what stands behind {"id":"…","at":…, .
func body(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // only strings, numbers, and data that was checked
	}
	return text[1:]
}

// presence is the event of a user or channel.
type presence struct {
	Type    Kind   `json:"type"`
	User    string `json:"user,omitempty"`
	Channel string `json:"channel,omitempty"`
}

// watch is what is kept of a message, and with a type before it the event.
type watch struct {
	Type    Kind            `json:"type,omitempty"`
	User    string          `json:"user,omitempty"`
	Clients []Place         `json:"clients"`
	Data    json.RawMessage `json:"data"`
}
