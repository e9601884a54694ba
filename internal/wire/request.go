package wire

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf8"
)

// MaxDepth is how deep arrays and objects may be nested in what comes from outside.
const MaxDepth = 64

// Ref is the optional number by which a client recognises the answer to a message.
type Ref struct {
	Value int64
	Set   bool
}

// UnmarshalJSON takes an integer or null.
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

// MarshalJSON writes the integer, or null.
func (r Ref) MarshalJSON() ([]byte, error) {
	if !r.Set {
		return []byte("null"), nil
	}
	return strconv.AppendInt(nil, r.Value, 10), nil
}

// IsZero makes `omitzero` leave an unset ref out.
func (r Ref) IsZero() bool { return !r.Set }

// RefOf is a set Ref.
func RefOf(v int64) Ref { return Ref{Value: v, Set: true} }

// Request is a message from client to broker; which fields count depends on Type.
type Request struct {
	Type     string          `json:"type"`
	Ref      Ref             `json:"ref,omitzero"`
	Token    string          `json:"token,omitempty"`
	Client   string          `json:"client,omitempty"`
	User     string          `json:"user,omitempty"`
	Secret   string          `json:"secret,omitempty"`
	Ack      string          `json:"ack,omitempty"`
	Instance string          `json:"instance,omitempty"`
	Attempt  int64           `json:"attempt,omitempty"`
	Channel  string          `json:"channel,omitempty"`
	After    *int64          `json:"after,omitempty"`
	ID       int64           `json:"id,omitempty"`
	Limit    int             `json:"limit,omitempty"`
	Presence bool            `json:"presence,omitempty"`
	Cursor   string          `json:"cursor,omitempty"`
	Info     json.RawMessage `json:"info,omitempty"`
	Data     json.RawMessage `json:"data,omitempty"`
	// Of is the id of the client that an ack is meant for. The ack is ignored if the connection has
	// another one, because that client's queue has other ids. Empty means any.
	Of string `json:"-"`
}

// Types of requests.
const (
	TypeConnect     = "connect"
	TypeSubscribe   = "subscribe"
	TypeUnsubscribe = "unsubscribe"
	TypePublish     = "publish"
	TypeAck         = "ack"
	TypeHistory     = "history"
	TypePresence    = "presence" // the answer has the same type
	TypeRequest     = "request"
	TypeRefresh     = "refresh"
	TypePing        = "ping"
	TypePong        = "pong"
)

// CheckText refuses what is not UTF-8 or nests deeper than MaxDepth.
func CheckText(raw []byte) error {
	if !utf8.Valid(raw) {
		return Errorf(BadRequest, "the message is not UTF-8")
	}
	depth := 0
	for i := 0; i < len(raw); i++ {
		switch raw[i] {
		case '"':
			i = StringEnd(raw, i)
		case '{', '[':
			if depth++; depth > MaxDepth {
				return Errorf(BadRequest, "byte %d: nested deeper than %d levels", i, MaxDepth)
			}
		case '}', ']':
			depth--
		}
	}
	return nil
}

// CompactData checks a payload that a client or a backend sent and returns it without
// insignificant white space (a line break would end a TCP line early). limit is in
// bytes, of the payload as it came.
func CompactData(data []byte, limit int) ([]byte, error) {
	switch {
	case len(data) == 0:
		return nil, Errorf(BadRequest, "data: missing")
	case len(data) > limit:
		return nil, Errorf(TooLarge, "data: %d bytes, at most %d are allowed", len(data), limit)
	}
	s := NewScanner(data)
	if value, compact, ok := s.Value(); ok && len(value) == len(data) {
		if compact {
			return bytes.Clone(data), nil
		}
		return AppendCompact(make([]byte, 0, len(data)), data), nil
	}
	return compactData(data)
}

// compactData is CompactData by encoding/json, which says what is wrong; it also takes white space around the value.
func compactData(data []byte) ([]byte, error) {
	if err := CheckText(data); err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	buf.Grow(len(data))
	if json.Compact(&buf, data) != nil { // it does not say where
		return nil, JSONError(json.Unmarshal(data, new(json.RawMessage)))
	}
	return buf.Bytes(), nil
}

// MaxInfo is the most bytes that the others in a channel are told of a client.
const MaxInfo = 1 << 10

// CompactInfo checks what a client or its token says of it to the others in a channel: a JSON object, or nothing.
func CompactInfo(info []byte) ([]byte, error) {
	if len(info) == 0 || string(info) == "null" {
		return nil, nil
	}
	compact, err := CompactData(info, MaxInfo)
	switch {
	case len(info) > MaxInfo:
		return nil, Errorf(TooLarge, "info: %d bytes, at most %d are allowed", len(info), MaxInfo)
	case err != nil:
		return nil, Errorf(BadRequest, "info: %s", JSONError(err).Error())
	case compact[0] != '{':
		return nil, Errorf(BadRequest, "info: it is no JSON object")
	}
	return compact, nil
}

// JSONError says what is wrong with a JSON text, and where, as an *Error: err is
// encoding/json's.
func JSONError(err error) error {
	if own, ok := errors.AsType[*Error](err); ok {
		return own
	}
	if syntax, ok := errors.AsType[*json.SyntaxError](err); ok {
		return Errorf(BadRequest, "not JSON: byte %d: %s", syntax.Offset, syntax.Error())
	}
	if typ, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		if typ.Field == "" { // the value may be a number of any length
			return Errorf(BadRequest, "a JSON object is expected, not %.40s", typ.Value)
		}
		return Errorf(BadRequest, "%s: %.40s does not fit, expected %s, at byte %d", typ.Field, typ.Value, kindOf(typ.Type), typ.Offset)
	}
	if field, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok { // it has no type of its own
		return Errorf(BadRequest, "unknown field %.200s", field)
	}
	return Errorf(BadRequest, "not JSON: %.200s", err.Error())
}

// kindOf names what a field takes in the words of JSON.
func kindOf(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		return "a list"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Float32, reflect.Float64:
		return "a number"
	}
	return "an integer"
}
