package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
)

// EntryMark is the first byte of the data of a log entry that has an [Entry]. No JSON begins with
// it, so a broker that does not know entries skips them.
const EntryMark = '~'

// Entry is a message of a channel, as the log holds it: EntryMark and the JSON of the Entry. It may
// change the state, have the data of a message and its author, or both. A [Map] applies the changes
// in this order: Cleared, Gone, Del, Set, Until, Away, Back, Own.
//
// Later versions may add members. A broker that does not know a member ignores it, and delivers the
// rest.
type Entry struct {
	// Erased is the time at which this message was erased, Unix ms, or 0. Its changes of fields are
	// left, because the state is computed from the log. It is the first member of the JSON, see
	// IsErased.
	Erased int64 `json:"erased,omitempty"`

	Cleared bool                       `json:"cleared,omitempty"` // all fields were removed
	Gone    map[string]string          `json:"gone,omitempty"`    // fields that ended, with Expired or Left
	Del     []string                   `json:"del,omitempty"`     // fields that were removed
	Set     map[string]json.RawMessage `json:"set,omitempty"`     // new values; their Until is 0, unless it is given below
	Until   map[string]int64           `json:"until,omitempty"`   // new times at which fields end, Unix ms; 0 for never
	Away    map[string]int64           `json:"away,omitempty"`    // fields whose owners have left, with their new Until
	Back    []string                   `json:"back,omitempty"`    // fields of which an owner is back
	// Own lists the owners of each field whose owners have changed. Clients do not receive it.
	Own map[string][]string `json:"own,omitempty"`

	// By is the author that readers may see: the id of the client that published the message or, in a
	// channel that shows aliases (Update.ByField), its alias. It is "" for the backend, and for a
	// client without an alias in such a channel.
	By string `json:"by,omitempty"`
	// From is the id of the client that published the message, if By is not that id. Only the backend
	// sees it.
	From string `json:"from,omitempty"`
	// Exclude is the id of the client that does not receive Data, or "".
	Exclude string `json:"exclude,omitempty"`
	// Erase is the id of an earlier message, or 0. The entry reports to readers that this message was
	// erased, and has no other member.
	Erase int64           `json:"erase,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"` // the data of the message
}

// The reasons in Entry.Gone.
const (
	Expired = "expired" // the lease has ended
	Left    = "left"    // the owners have left, and the grace period has ended
)

// IsEntry reports whether the data of a message is an Entry.
func IsEntry(data []byte) bool { return len(data) > 0 && data[0] == EntryMark }

// erasedStart is the beginning of each encoded entry that has Erased.
const erasedStart = string(EntryMark) + `{"erased":`

// IsErased reports whether the data of a message is an Entry that has Erased.
func IsErased(data []byte) bool { return bytes.HasPrefix(data, []byte(erasedStart)) }

// HasChanges reports whether the entry changes the state.
func (e *Entry) HasChanges() bool {
	return e.Cleared || len(e.Gone) > 0 || len(e.Del) > 0 || len(e.Set) > 0 || len(e.Until) > 0 || len(e.Away) > 0 ||
		len(e.Back) > 0 || len(e.Own) > 0
}

// ErasedAt returns what stays of the entry if its message is erased at a time, in Unix ms.
func (e *Entry) ErasedAt(ms int64) *Entry {
	left := *e
	left.Erased, left.By, left.From, left.Exclude, left.Data = ms, "", "", "", nil
	return &left
}

// Message returns what a Message has of the entry.
func (e *Entry) Message() Message { return Message{By: e.By, Exclude: e.Exclude, Data: e.Data} }

// WithoutData returns the entry without Data, which is what the client Exclude receives.
func (e *Entry) WithoutData() *Entry {
	left := *e
	left.Data = nil
	return &left
}

// Encode returns the entry as data of a message.
func (e *Entry) Encode() []byte {
	if e.isPlain() {
		return e.appendPlain(append(make([]byte, 0, e.size()), EntryMark))
	}
	return e.encodeAny()
}

// encodeAny encodes any entry with encoding/json.
func (e *Entry) encodeAny() []byte {
	var out bytes.Buffer
	out.WriteByte(EntryMark)
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		panic(fmt.Errorf("state: a value is not JSON: %w", err)) // the caller has checked the values
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n"))
}

// DecodeEntry decodes the data of a message that IsEntry reports.
func DecodeEntry(data []byte) (*Entry, error) {
	if !IsEntry(data) {
		return nil, fmt.Errorf("not an entry: %.40q", data)
	}
	if e := new(Entry); scanEntry(e, data[1:]) {
		return e, nil
	}
	e := new(Entry) // scanEntry may have decoded a part into the first one
	if err := json.Unmarshal(data[1:], e); err != nil {
		return nil, fmt.Errorf("malformed entry: %w", err)
	}
	return e, nil
}

// isEmpty reports whether the entry has neither changes nor data.
func (e *Entry) isEmpty() bool { return !e.HasChanges() && e.Data == nil }

// setGone records the end of a field. It removes the field from the parts that set or change it,
// because readers apply Gone first.
func (e *Entry) setGone(name, reason string) {
	put(&e.Gone, name, reason)
	delete(e.Set, name)
	delete(e.Until, name)
	delete(e.Away, name)
	delete(e.Own, name)
	e.Back = slices.DeleteFunc(e.Back, func(back string) bool { return back == name })
}

func (e *Entry) setUntil(name string, until int64) { put(&e.Until, name, until) }
func (e *Entry) setAway(name string, until int64)  { put(&e.Away, name, until) }

func (e *Entry) setOwners(name string, owners []string) {
	put(&e.Own, name, append([]string{}, owners...))
}

// put sets a member of a map, which it makes if it is nil.
func put[V any](m *map[string]V, name string, value V) {
	if *m == nil {
		*m = make(map[string]V)
	}
	(*m)[name] = value
}
