package wire

import (
	"cmp"
	"encoding/json"
)

// Event is a message from the broker to a client. Its Type decides which fields are set.
type Event struct {
	Type      string          `json:"type"`
	Ref       Ref             `json:"ref,omitzero"`
	Client    string          `json:"client,omitempty"`
	User      string          `json:"user,omitempty"`
	Secret    string          `json:"secret,omitempty"` // connected: proves later that a client without a user owns its id
	Server    string          `json:"server,omitempty"`
	Ping      int             `json:"ping,omitempty"` // seconds
	Queued    *int            `json:"queued,omitempty"`
	Channel   string          `json:"channel,omitempty"`
	After     *int64          `json:"after,omitempty"`
	ID        *int64          `json:"id,omitempty"`
	Recovered *bool           `json:"recovered,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	Messages  *[]Stored       `json:"messages,omitempty"`
	More      bool            `json:"more,omitempty"` // history: more messages follow the last one
	// TokenIgnored, of connected, says that the client sent a token and the broker has no keys for
	// tokens: the user is the one that the client has stated.
	TokenIgnored bool            `json:"token_ignored,omitempty"`
	Code         string          `json:"code,omitempty"`
	Message      string          `json:"message,omitempty"`
	Reconnect    *bool           `json:"reconnect,omitempty"`
	AfterMS      int64           `json:"after_ms,omitempty"`
	Retry        *bool           `json:"retry,omitempty"`   // error: false if waiting does not help, although the code says so
	Info         json.RawMessage `json:"info,omitempty"`    // join: the client's info
	Clients      *[]Member       `json:"clients,omitempty"` // presence: the members
	Next         string          `json:"next,omitempty"`    // presence: the cursor of the next page
	Count        *int            `json:"count,omitempty"`   // presence: number of clients
	Users        *int            `json:"users,omitempty"`   // presence: number of different users
	Joined       []Member        `json:"joined,omitempty"`  // presence of a large channel: joins since the last event
	Left         []Member        `json:"left,omitempty"`    // presence of a large channel: leaves since the last event

	Limits *Limits `json:"limits,omitempty"` // connected
	// Alias, of the answer to TypePresence, is how the client is shown in a channel that shows
	// aliases, empty if it is not. Nil if the channel shows client ids.
	Alias *string `json:"alias,omitempty"`

	*StateEvent // nil for most events
}

// Limits are what the broker allows one connection. Zero means no limit. The rates are token
// buckets with a burst of four seconds.
type Limits struct {
	Message      int `json:"message,omitempty"`       // bytes of one message
	Channels     int `json:"channels,omitempty"`      // subscriptions
	MessageRate  int `json:"message_rate,omitempty"`  // messages a second
	ByteRate     int `json:"byte_rate,omitempty"`     // bytes a second
	RequestRate  int `json:"request_rate,omitempty"`  // requests a second
	Waiting      int `json:"waiting,omitempty"`       // messages without an answer
	WaitingBytes int `json:"waiting_bytes,omitempty"` // their bytes
}

// Member is a client in the presence of a channel.
type Member struct {
	Client string          `json:"client"`
	User   string          `json:"user,omitempty"`
	Info   json.RawMessage `json:"info,omitempty"`
	Since  int64           `json:"since,omitempty"` // join time in Unix milliseconds, on the store's clock
	Here   json.RawMessage `json:"here,omitempty"`  // the value that the client shows; see TypeHere
}

// Stored is a message in the history of a channel.
type Stored struct {
	ID   int64           `json:"id"`
	Data json.RawMessage `json:"data,omitempty"` // absent if the message only changes the state
	// By is the client that published the message, or its alias, if the reader may see it. It is
	// empty for a message of the backend.
	By string `json:"by,omitempty"`
	// From is the id of the client that published the message, if By is not that id. Only the backend
	// receives it.
	From string `json:"from,omitempty"`
	// Exclude is the id of the client that did not receive the message. Only the backend receives it.
	Exclude string `json:"exclude,omitempty"`
	// Erased is the time at which the message was erased, Unix ms, or 0. Only its changes are left.
	Erased int64 `json:"erased,omitempty"`

	*StateEvent // the changes of the state; nil if there are none, or the request does not ask for them
}

// The types of events. TypeHistory and TypePresence are requests and events.
const (
	TypeConnected    = "connected"
	TypeSubscribed   = "subscribed"
	TypeUnsubscribed = "unsubscribed"
	TypePublished    = "published"
	TypeMessage      = "message"
	TypeGap          = "gap"
	TypeJoin         = "join"
	TypeLeave        = "leave"
	TypeAccepted     = "accepted"
	TypeReply        = "reply"
	TypeRefreshed    = "refreshed"
	TypeError        = "error"
	TypeClosing      = "closing"
)

// Closing returns the event that says why the broker ends a connection. detail is the message, ""
// for the one that all connections with this reason get. afterMS is the retry delay in
// milliseconds, or 0.
func Closing(reason CloseReason, detail string, afterMS int64) Event {
	reconnect := reason.Reconnect()
	return Event{
		Type: TypeClosing, Code: string(reason), Message: cmp.Or(detail, closings[reason].message), Reconnect: &reconnect, AfterMS: afterMS,
	}
}

// DecodeEvent decodes the JSON of one event.
func DecodeEvent(raw []byte) (Event, error) {
	var e Event
	if err := json.Unmarshal(raw, &e); err != nil {
		return Event{}, JSONError(err)
	}
	if e.Type == "" {
		return e, Errorf(BadRequest, "type: missing")
	}
	return e, nil
}
