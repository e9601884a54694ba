package wire

import "encoding/json"

// Event is a message from broker to client; which fields are there depends on Type.
type Event struct {
	Type      string          `json:"type"`
	Ref       Ref             `json:"ref,omitzero"`
	Client    string          `json:"client,omitempty"`
	User      string          `json:"user,omitempty"`
	Secret    string          `json:"secret,omitempty"` // connected: by which a client without a user gets its id again
	Server    string          `json:"server,omitempty"`
	Ping      int             `json:"ping,omitempty"` // seconds
	Queued    *int            `json:"queued,omitempty"`
	Channel   string          `json:"channel,omitempty"`
	After     *int64          `json:"after,omitempty"`
	ID        *int64          `json:"id,omitempty"`
	Recovered *bool           `json:"recovered,omitempty"`
	Data      json.RawMessage `json:"data,omitempty"`
	Messages  *[]Stored       `json:"messages,omitempty"`
	More      bool            `json:"more,omitempty"` // history: there are messages behind the last one
	Code      string          `json:"code,omitempty"`
	Message   string          `json:"message,omitempty"`
	Reconnect *bool           `json:"reconnect,omitempty"`
	AfterMS   int64           `json:"after_ms,omitempty"`
	Info      json.RawMessage `json:"info,omitempty"`    // join: what its token or its connect says of the client
	Clients   *[]Member       `json:"clients,omitempty"` // presence: who is there
	Next      string          `json:"next,omitempty"`    // presence: the cursor of the next page
	Count     *int            `json:"count,omitempty"`   // presence: clients
	Users     *int            `json:"users,omitempty"`   // presence: different users among them
	Joined    []Member        `json:"joined,omitempty"`  // presence, of a large channel: since it was last told
	Left      []Member        `json:"left,omitempty"`    // likewise
}

// Member is one client in a channel.
type Member struct {
	Client string          `json:"client"`
	User   string          `json:"user,omitempty"`
	Info   json.RawMessage `json:"info,omitempty"`
	Since  int64           `json:"since,omitempty"` // ms since 1970, on the store's clock
}

// Stored is one message of a history.
type Stored struct {
	ID   int64           `json:"id"`
	Data json.RawMessage `json:"data"`
}

// Types of events.
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

// Closing returns the event that says why the broker ends a connection. afterMS is the retry delay
// in milliseconds, or 0.
func Closing(reason CloseReason, detail string, afterMS int64) Event {
	reconnect := reason.Reconnect()
	return Event{
		Type: TypeClosing, Code: string(reason), Message: detail, Reconnect: &reconnect, AfterMS: afterMS,
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
