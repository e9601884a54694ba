package wire

import (
	"encoding/json"
	"strconv"
)

// Ref is an optional number in a request. The answer repeats it.
type Ref struct {
	Value int64
	Set   bool
}

// UnmarshalJSON implements json.Unmarshaler. It accepts an integer or null.
func (r *Ref) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		*r = Ref{}
		return nil
	}
	v, err := strconv.ParseInt(string(b), 10, 64)
	if err != nil {
		return Errorf(BadRequest, "ref: %.40s is not an integer", b)
	}
	*r = Ref{Value: v, Set: true}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (r Ref) MarshalJSON() ([]byte, error) {
	if !r.Set {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, r.Value, 10), nil
}

// IsZero reports whether the Ref is not set; `omitzero` then omits it.
func (r Ref) IsZero() bool { return !r.Set }

// RefOf returns a Ref that is set to v.
func RefOf(v int64) Ref { return Ref{Value: v, Set: true} }

// Request is a message from a client to the broker. Its Type decides which fields count.
type Request struct {
	Type     string          `json:"type"`
	Ref      Ref             `json:"ref,omitzero"`
	Token    string          `json:"token,omitempty"`
	Client   string          `json:"client,omitempty"`
	User     string          `json:"user,omitempty"`
	Secret   string          `json:"secret,omitempty"`
	Ack      string          `json:"ack,omitempty"`
	Instance string          `json:"instance,omitempty"` // connect: the run of the client's program
	Attempt  int64           `json:"attempt,omitempty"`  // connect: grows with each one of an Instance
	Channel  string          `json:"channel,omitempty"`
	After    *int64          `json:"after,omitempty"`
	ID       int64           `json:"id,omitempty"`
	Limit    int             `json:"limit,omitempty"`
	Presence bool            `json:"presence,omitempty"`
	Cursor   string          `json:"cursor,omitempty"`
	Info     json.RawMessage `json:"info,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
	Method   string          `json:"method,omitempty"` // request: which method of the broker answers
	// AckOf is the client id of an earlier connection, if an ack has the position in the client queue
	// that was reached there. A connection with another client id ignores the ack, because its queue
	// has other message ids. If ID is above all ids of the queue, the store has lost the last
	// messages, and the client has received all that are left. If AckOf is empty, the ack is for this
	// connection, and ID must be an id of its queue.
	AckOf string `json:"-"`

	// The parts that concern the state of channels are nil for most requests.
	*Change
	*StateRequest
}

// The types of requests.
const (
	TypeConnect     = "connect"
	TypeSubscribe   = "subscribe"
	TypeUnsubscribe = "unsubscribe"
	TypePublish     = "publish"
	TypeAck         = "ack"
	TypeHistory     = "history"
	TypePresence    = "presence" // the answers have the same type
	TypeRequest     = "request"
	TypeRefresh     = "refresh"
	TypePing        = "ping"
	TypePong        = "pong"
)
