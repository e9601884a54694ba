package wire

import (
	"bytes"
	"encoding/json"
	"reflect"
)

// TypeState is the type of the requests for pages of a channel's state, and of the pages.
const TypeState = "state"

// TypeHere is the type of the requests that show a client's value to the members of a channel, and
// of the events with the values of others.
const TypeHere = "here"

// Change is the part of a publish that changes the fields of a channel.
type Change struct {
	Set   Values            `json:"set,omitempty"`   // new values by field
	Del   []string          `json:"del,omitempty"`   // fields to remove
	Add   Values            `json:"add,omitempty"`   // by field: a number, or {"by","min","max"}
	Touch []string          `json:"touch,omitempty"` // fields that only get a new lease
	If    Values            `json:"if,omitempty"`    // by field: an id, 0 for absent, or true for exists
	TTL   *float64          `json:"ttl,omitempty"`   // lease of the fields that are set or touched, in seconds
	Own   *bool             `json:"own,omitempty"`   // whether the client owns the fields
	Of    map[string]string `json:"of,omitempty"`    // the parents of fields that are set
}

// Values are members of a JSON object, in the order of the text. Decoding refuses an object that
// has a name twice.
type Values []Value

// Value is one member of Values.
type Value struct {
	Name string
	JSON json.RawMessage
}

// maxValues is above every limit of the number of fields. It bounds the memory for a large body.
const maxValues = 1 << 16

// UnmarshalJSON implements json.Unmarshaler.
func (v *Values) UnmarshalJSON(text []byte) error {
	if string(text) == "null" {
		*v = nil
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(text))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		// encoding/json adds the name of the member that has these Values.
		return &json.UnmarshalTypeError{Value: NameOfKind(text[0]), Type: reflect.TypeFor[map[string]json.RawMessage]()}
	}
	list := Values{}
	seen := make(map[string]struct{})
	for d.More() {
		if len(list) == maxValues {
			return Errorf(TooLarge, "more than %d fields", maxValues)
		}
		name, err := d.Token()
		if err != nil {
			return err
		}
		var one Value
		one.Name, _ = name.(string)
		if err := d.Decode(&one.JSON); err != nil {
			return err
		}
		if _, twice := seen[one.Name]; twice {
			return Errorf(BadRequest, "field %.128s: it appears twice", one.Name)
		}
		seen[one.Name] = struct{}{}
		list = append(list, one)
	}
	*v = list
	return nil
}

// NameOfKind names the kind of a JSON value that is not an object by its first byte, as
// encoding/json does.
func NameOfKind(first byte) string {
	switch first {
	case 'n':
		return "null"
	case '[':
		return "array"
	case '"':
		return "string"
	case 't', 'f':
		return "bool"
	}
	return "number"
}

// MarshalJSON implements json.Marshaler.
func (v Values) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, one := range v {
		name, err := json.Marshal(one.Name)
		if err != nil {
			return nil, err
		}
		if i > 0 {
			out = append(out, ',')
		}
		out = append(append(append(out, name...), ':'), one.JSON...)
	}
	return append(out, '}'), nil
}

// StateRequest is the part of a subscribe, a publish or a request for pages that concerns the
// state.
type StateRequest struct {
	// State asks for the state with a subscription. Prefix selects the fields that begin with it.
	State  *Selector `json:"state,omitempty"`
	Held   bool      `json:"held,omitempty"` // the client holds the state at its position
	Prefix string    `json:"prefix,omitempty"`
	Key    string    `json:"key,omitempty"` // idempotency key of a publish
	// Durable, of a publish, asks for an answer after a replica has the message.
	Durable bool `json:"durable,omitempty"`
	// Echo, of a publish, is false if the client itself does not receive the message. Nil means true.
	Echo *bool `json:"echo,omitempty"`
}

// Selector selects fields: true selects all fields, a string those that begin with it.
type Selector struct{ Prefix string }

// UnmarshalJSON implements json.Unmarshaler.
func (s *Selector) UnmarshalJSON(text []byte) error {
	switch {
	case string(text) == "true":
		*s = Selector{}
	case len(text) > 0 && text[0] == '"':
		return json.Unmarshal(text, &s.Prefix)
	default:
		return Errorf(BadRequest, "state: %.40s is neither true nor a prefix", text)
	}
	return nil
}

// MarshalJSON implements json.Marshaler.
func (s Selector) MarshalJSON() ([]byte, error) {
	if s.Prefix == "" {
		return []byte("true"), nil
	}
	return json.Marshal(s.Prefix)
}

// StateEvent is the part of an event that concerns the state of a channel. It also has what a
// message of a channel has besides its data: By and Erase.
type StateEvent struct {
	First bool `json:"first,omitempty"` // of the first page of a series
	// Fields are the fields of a page, [id, value], [id, value, until] or [id, value, until, "away"]
	// by name; the current fields of a refused change, null for an absent one; or the results of a
	// publish, numbers by name.
	Fields json.RawMessage `json:"fields,omitempty"`
	Cursor string          `json:"cursor,omitempty"` // of the answer to a request: the cursor of the next page
	Group  string          `json:"group,omitempty"`  // of an error: the group that is full
	Max    *int            `json:"max,omitempty"`    // of an error: the limit

	// Of a message: the changes of fields.
	Cleared bool                       `json:"cleared,omitempty"`
	Gone    map[string]string          `json:"gone,omitempty"`
	Del     []string                   `json:"del,omitempty"`
	Set     map[string]json.RawMessage `json:"set,omitempty"`
	Until   map[string]int64           `json:"until,omitempty"`
	Away    map[string]int64           `json:"away,omitempty"`
	Back    []string                   `json:"back,omitempty"`
	By      string                     `json:"by,omitempty"` // the client that published the message
	// Erase is the id of a message that was erased, or 0. A message that has it has no data.
	Erase int64 `json:"erase,omitempty"`
}
