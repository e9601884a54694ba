package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
)

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

// Encode is the Frame of e. Payloads stay as they are, but for white space.
func (e Event) Encode() Frame {
	if e.simple() {
		return seal(e.append(make([]byte, maxHead, maxHead+192)))
	}
	return e.marshal()
}

// marshal is Encode by encoding/json.
func (e Event) marshal() Frame {
	var buf bytes.Buffer
	buf.Write(make([]byte, maxHead))
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)  // markup would take six times its room
	if encoder.Encode(e) != nil { // only a RawMessage that is not JSON can do this, and those are checked on entry
		return Event{Type: TypeError, Ref: e.Ref, Code: string(BadRequest), Message: "the payload is not JSON"}.Encode()
	}
	return seal(bytes.TrimSuffix(buf.Bytes(), []byte("\n")))
}

// EncodeMessage is the Frame of a message from a channel, or of the client queue when
// channel is empty. data must be compact JSON.
func EncodeMessage(channel string, id int64, data []byte) Frame {
	b := make([]byte, maxHead, maxHead+64+len(channel)+len(data))
	b = append(b, `{"type":"message",`...)
	if channel != "" {
		b = append(b, `"channel":`...)
		b = appendString(b, channel)
		b = append(b, ',')
	}
	b = append(b, `"id":`...)
	b = strconv.AppendInt(b, id, 10)
	b = append(b, `,"data":`...)
	b = append(b, data...)
	b = append(b, '}')
	return seal(b)
}

// appendString appends s as a JSON string. Names hold no control characters and are
// UTF-8, so only two characters need an escape.
func appendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	for i := 0; i < len(s); i++ {
		if s[i] == '"' || s[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '"')
}

// DecodeEvent reads one message from the broker.
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
