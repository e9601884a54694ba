package state

import (
	"encoding/json"
	"fmt"

	"switchboard/internal/wire"
)

// Follower holds the fields of a channel as one client sees them. It follows the pages and messages
// of a subscription:
//
//   - All pages of a series have one id S. The first page empties the map.
//   - After the series, messages with an id above S change fields. Of the others, only the data
//     counts.
//   - Pages never move the position of the subscription.
//
// The zero Follower is empty. It is not safe for concurrent use.
type Follower struct {
	m       *Map
	pages   int64 // id of the series whose last page is missing, 0 for none
	held    bool  // the last page of a series has arrived
	pending []message
}

// message is a message that waits for the last page of a series.
type message struct {
	id    int64
	entry *Entry
}

// Map returns the fields. They are complete if Held reports so. The next page or message changes
// the map.
func (f *Follower) Map() *Map {
	if f.m == nil {
		f.m = NewMap(0)
	}
	return f.m
}

// Held reports whether the last page of the newest series has arrived. If so, and if the position
// of the subscription is at least the id of the series, the client may subscribe again with
// held:true. Below that id it may not: a failover of the store may lose the messages between the
// position and the id, and keep the position. The fields would then have changes that are lost.
func (f *Follower) Held() bool { return f.held }

// Gap records that messages were missed: the fields are incomplete until the next series of pages.
func (f *Follower) Gap() { f.pages, f.held, f.pending = 0, false, nil }

// Page applies a page of the series with the given id. more says that it is not the last one. A
// page of another series than the newest is ignored.
func (f *Follower) Page(id int64, more bool, page *wire.StateEvent) error {
	first := page != nil && page.First
	if !first && (f.pages == 0 || f.pages != id) {
		return nil
	}
	if first {
		f.m, f.pages, f.held, f.pending = NewMap(id), id, false, nil
	}
	if page != nil && len(page.Fields) > 0 {
		fields, err := ParseFields(page.Fields)
		if err != nil {
			return err
		}
		for name, shown := range fields {
			if shown != nil {
				f.m.Fields[name] = *shown
			}
		}
	}
	if more {
		return nil
	}
	f.pages, f.held = 0, true
	for _, m := range f.pending {
		f.m.Apply(m.id, m.entry)
	}
	f.pending = nil
	return nil
}

// Message applies the changes of a message. Messages must arrive in the order of their ids. change
// may be nil.
func (f *Follower) Message(id int64, change *wire.StateEvent) {
	entry := new(Entry)
	if change != nil {
		entry = &Entry{
			Cleared: change.Cleared, Gone: change.Gone, Del: change.Del, Set: change.Set,
			Until: change.Until, Away: change.Away, Back: change.Back,
		}
	}
	if f.pages != 0 {
		f.pending = append(f.pending, message{id, entry})
		return
	}
	f.Map().Apply(id, entry)
}

// ParseFields parses the `fields` of a page or a refusal, see [AppendField]. An absent field is
// nil. The Value of a field is nil if the object has only its id.
func ParseFields(object []byte) (map[string]*Shown, error) {
	var raw map[string][]json.RawMessage
	if err := json.Unmarshal(object, &raw); err != nil {
		return nil, fmt.Errorf("fields of a state: %w", err)
	}
	fields := make(map[string]*Shown, len(raw))
	for name, parts := range raw {
		shown, err := parseShown(parts)
		if err != nil {
			return nil, fmt.Errorf("field %.128q of a state: %w", name, err)
		}
		fields[name] = shown
	}
	return fields, nil
}

// parseShown parses [id], [id, value], [id, value, until], or [id, value, until, "away"], or null.
// More parts than these are ignored.
func parseShown(parts []json.RawMessage) (*Shown, error) {
	if parts == nil {
		return nil, nil
	}
	f := new(Shown)
	for i, part := range parts {
		var err error
		switch i {
		case 0:
			err = json.Unmarshal(part, &f.ID)
		case 1:
			f.Value = part
		case 2:
			err = json.Unmarshal(part, &f.Until)
		case 3:
			f.Away = string(part) == `"away"`
		}
		if err != nil {
			return nil, err
		}
	}
	if len(parts) == 0 {
		return nil, fmt.Errorf("it has no id")
	}
	return f, nil
}
