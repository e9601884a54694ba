package events

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"slices"
)

// Kind is the "type" of an event.
type Kind string

const (
	// UserOnline means that the first client of a user has connected to any instance.
	UserOnline Kind = "user_online"
	// UserOffline means that the last client of a user has disconnected and that none has come back
	// within [Grace].
	UserOffline Kind = "user_offline"
	// ChannelOccupied means that a channel has its first subscriber.
	ChannelOccupied Kind = "channel_occupied"
	// ChannelVacated means that a channel has had no subscriber for [Grace].
	ChannelVacated Kind = "channel_vacated"
	// MessageUndelivered means that no client has acknowledged a message within the time that its
	// push gave.
	MessageUndelivered Kind = "message_undelivered"
	// FieldsGone means that fields of a channel's state have ended by themselves.
	FieldsGone Kind = "fields_gone"
	// HoldExpired means that a hold of places was not confirmed in time, see package kit/hold.
	HoldExpired Kind = "hold_expired"
	// RoomEnded means that a room has ended, see package kit/room.
	RoomEnded Kind = "room_ended"
)

// endKinds are the kinds of events about fields that end.
var endKinds = []Kind{FieldsGone, HoldExpired}

// Kinds contains all kinds of events.
var Kinds = []Kind{UserOnline, UserOffline, ChannelOccupied, ChannelVacated, MessageUndelivered, FieldsGone, HoldExpired, RoomEnded}

// CheckKinds returns an error that names the first unknown kind.
func CheckKinds(kinds []Kind) error {
	for _, k := range kinds {
		if !slices.Contains(Kinds, k) {
			return fmt.Errorf("events: unknown kind %q, want one of %v", k, Kinds)
		}
	}
	return nil
}

// A ClientMessage identifies a message in a client's queue.
type ClientMessage struct {
	Client string `json:"client"`
	ID     int64  `json:"id"`
}

// Shards is the number of outboxes. It must never change, and must be the same in all processes:
// the name of a user or channel decides in which shard its data is.
const Shards = 16

// Prefixes of the entries on the due list. They are part of the data in Redis.
const (
	userPrefix     = "u:"
	channelPrefix  = "c:"
	deadlinePrefix = "d:"
	fieldsPrefix   = "f:"
)

// shardOf returns the shard for a name. The changes of a user and the messages to the user are in
// one shard, so that their events are in order.
func shardOf(prefix, name string) int {
	h := fnv.New32a()
	_, _ = h.Write([]byte(prefix))
	_, _ = h.Write([]byte(name))
	return int(h.Sum32() % Shards)
}

// body returns the JSON of v without its opening brace. The store puts {"id":"…","at":…, before it.
func body(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // impossible: v has only strings, numbers, and JSON that was checked
	}
	return text[1:]
}

// presenceEvent is the event of a user or channel.
type presenceEvent struct {
	Type    Kind   `json:"type"`
	User    string `json:"user,omitempty"`
	Channel string `json:"channel,omitempty"`
}

// undeliveredEvent is the event of a message that was not acknowledged in time. Without Type, it is
// the record that the store keeps until the deadline.
type undeliveredEvent struct {
	Type    Kind            `json:"type,omitempty"`
	User    string          `json:"user,omitempty"`
	Clients []ClientMessage `json:"clients"`
	Data    json.RawMessage `json:"data"`
}

// emittedType is the kind of an event of [Recorder.Emit], or "" in the record of a message.
type emittedType struct {
	Type Kind `json:"type"`
}

// fieldsEvent is the event of fields that have ended.
type fieldsEvent struct {
	Type    Kind   `json:"type"`
	Channel string `json:"channel"`
	Message int64  `json:"message"` // id in the channel's log
	Cleared bool   `json:"cleared,omitempty"`
	// Gone has the reason for each field: expired or left.
	Gone map[string]string `json:"gone,omitempty"`
}
