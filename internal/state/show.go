package state

import (
	"encoding/json"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"switchboard/internal/wire"
)

// Filter selects what a subscriber or a caller sees of a message besides its data. The zero Filter
// shows nothing else.
type Filter struct {
	State  bool   // shows fields
	Prefix string // only fields that begin with it
	By     bool   // shows the author of a message, also without State
	Hidden bool   // also shows the fields that begin with $$. Only the backend sees them
}

// Shows reports whether the filter shows the field.
func (f Filter) Shows(name string) bool {
	return f.State && strings.HasPrefix(name, f.Prefix) && (f.Hidden || !IsHidden(name))
}

// PageBytes is the size of a page, and of the fields of a refusal, in bytes of JSON. A page exceeds
// it if its only field does; a refusal exceeds it by the ids of the fields that do not fit.
const PageBytes = 32 << 10

// FieldsWriter writes fields as one JSON object: the `fields` of a page, an answer or a refusal.
type FieldsWriter struct {
	Filter Filter
	Max    int // most bytes. Zero means PageBytes

	json []byte
}

// Add adds a field. It does nothing if the filter does not show the field. It returns false, and
// adds nothing, if the object has fields and would become larger than Max.
func (w *FieldsWriter) Add(name string, f *Shown) bool {
	if !w.Filter.Shows(name) {
		return true
	}
	before := w.json
	if w.json = AppendField(w.begin(), name, f); len(before) > 0 && w.isOver() {
		w.json = before
		return false
	}
	return true
}

// AddShort adds a field, or only its id if the object would become larger than Max or the field has
// no value. A nil field is an absent one. It does nothing if the filter does not show the field.
func (w *FieldsWriter) AddShort(name string, f *Shown) {
	if !w.Filter.Shows(name) {
		return
	}
	begun := w.begin()
	if w.json = AppendField(begun, name, f); f != nil && (w.isOver() || len(f.Value) == 0) {
		w.json = append(strconv.AppendInt(append(appendName(begun, name), '['), f.ID, 10), ']')
	}
}

// begin returns the object with all that precedes the next field.
func (w *FieldsWriter) begin() []byte {
	if len(w.json) == 0 {
		return append(w.json, '{')
	}
	return append(w.json, ',')
}

// isOver reports whether the closed object is larger than Max.
func (w *FieldsWriter) isOver() bool {
	limit := w.Max
	if limit == 0 {
		limit = PageBytes
	}
	return len(w.json)+1 > limit
}

// JSON returns the object. The writer may not be used after it.
func (w *FieldsWriter) JSON() json.RawMessage {
	if len(w.json) == 0 {
		return json.RawMessage("{}")
	}
	return append(w.json, '}')
}

// AppendField appends a member of the object of fields to dst: the name, a colon, and
//
//	[id, value]
//	[id, value, until]
//	[id, value, until, "away"]   until is 0 if the field stays
//	null                         if f is nil: the field is absent
func AppendField(dst []byte, name string, f *Shown) []byte {
	dst = appendName(dst, name)
	if f == nil {
		return append(dst, "null"...)
	}
	dst = append(strconv.AppendInt(append(dst, '['), f.ID, 10), ',')
	dst = append(dst, f.Value...)
	if f.Until != 0 || f.Away {
		dst = strconv.AppendInt(append(dst, ','), f.Until, 10)
	}
	if f.Away {
		dst = append(dst, `,"away"`...)
	}
	return append(dst, ']')
}

// appendName appends a name and a colon. No character of a name is escaped in JSON.
func appendName(dst []byte, name string) []byte {
	return append(append(append(dst, '"'), name...), '"', ':')
}

// Pages returns the fields that the filter shows, in the order of names, as the `fields` of a
// series of pages of at most limit bytes each; 0 means PageBytes. There is at least one page.
//
// Pages leaves out the fields that are due at the time now; 0 leaves none out. now must not be
// later than the store's clock: it would leave out a field that is touched just in time.
func (m *Map) Pages(now int64, filter Filter, limit int) []json.RawMessage {
	return pages(m.sorted(), now, filter, limit)
}

// pages makes pages of fields in the order of names.
func pages(fields iter.Seq2[string, *Shown], now int64, filter Filter, limit int) (list []json.RawMessage) {
	w := FieldsWriter{Filter: filter, Max: limit}
	for name, f := range fields {
		if now > 0 && f.Until > 0 && f.Until <= now {
			continue
		}
		if !w.Add(name, f) {
			list = append(list, w.JSON())
			w = FieldsWriter{Filter: filter, Max: limit}
			w.Add(name, f)
		}
	}
	return append(list, w.JSON())
}

// Show returns what the filter shows of the entry, without its data. It returns nil if the message
// has no more than the data for this filter. A message with neither is not sent.
func (e *Entry) Show(filter Filter) *wire.StateEvent {
	s := e.showChanges(filter)
	if by := e.showBy(filter, s); by != "" {
		if s == nil {
			s = new(wire.StateEvent)
		}
		s.By = by
	}
	return s
}

// showBy returns the author of a message, if the filter shows it. changes are those that the filter
// shows, or nil.
func (e *Entry) showBy(filter Filter, changes *wire.StateEvent) string {
	if filter.By && (changes != nil || e.Data != nil) {
		return e.By
	}
	return ""
}

// showChanges returns the changes of fields that the filter shows, or nil.
func (e *Entry) showChanges(filter Filter) *wire.StateEvent {
	if !filter.State {
		return nil
	}
	s := &wire.StateEvent{
		Cleared: e.Cleared,
		Gone:    showMap(e.Gone, filter), Del: showList(e.Del, filter), Set: showMap(e.Set, filter),
		Until: showMap(e.Until, filter), Away: showMap(e.Away, filter), Back: showList(e.Back, filter),
	}
	if !s.Cleared && len(s.Gone)+len(s.Del)+len(s.Set)+len(s.Until)+len(s.Away)+len(s.Back) == 0 {
		return nil
	}
	return s
}

// ShowStored returns what the filter shows of a message of a channel, with the stored data, in a
// history. ok is false if that is nothing. The error is that of an entry that cannot be decoded.
func ShowStored(id int64, data []byte, filter Filter) (s wire.Stored, ok bool, err error) {
	if !IsEntry(data) {
		return wire.Stored{ID: id, Data: data}, true, nil
	}
	e, err := DecodeEntry(data)
	if err != nil {
		return s, false, err
	}
	if e.Erase != 0 {
		return wire.Stored{ID: id, StateEvent: &wire.StateEvent{Erase: e.Erase}}, true, nil
	}
	s = wire.Stored{ID: id, Data: e.Data, Erased: e.Erased, StateEvent: e.showChanges(filter)}
	s.By = e.showBy(filter, s.StateEvent)
	if filter.Hidden {
		s.From, s.Exclude = e.From, e.Exclude
	}
	return s, s.Data != nil || s.Erased != 0 || s.StateEvent != nil, nil
}

// showMap returns the fields that the filter shows. It is fields itself if that is all of them.
func showMap[V any](fields map[string]V, filter Filter) map[string]V {
	hidden := 0
	for name := range fields {
		if !filter.Shows(name) {
			hidden++
		}
	}
	if hidden == 0 {
		return fields
	}
	shown := make(map[string]V, len(fields)-hidden)
	for name, value := range fields {
		if filter.Shows(name) {
			shown[name] = value
		}
	}
	return shown
}

// showList returns the names that the filter shows. It is names itself if that is all of them.
func showList(names []string, filter Filter) []string {
	isHidden := func(name string) bool { return !filter.Shows(name) }
	if !slices.ContainsFunc(names, isHidden) {
		return names
	}
	return slices.DeleteFunc(slices.Clone(names), isHidden)
}

// Show returns the part of an error event that tells about the state: the current fields that the
// filter shows, values only within limit bytes, and the limit that is reached. A limit of 0 means
// PageBytes.
func (r *Refusal) Show(filter Filter, limit int) *wire.StateEvent {
	s := &wire.StateEvent{Group: r.Group}
	if r.Err.Code == wire.Full {
		s.Max = &r.Max
	}
	w := FieldsWriter{Filter: filter, Max: limit}
	for _, name := range slices.Sorted(maps.Keys(r.Fields)) {
		if f := r.Fields[name]; f == nil {
			w.AddShort(name, nil)
		} else {
			shown := f.Show()
			w.AddShort(name, &shown)
		}
	}
	if len(w.json) > 0 {
		s.Fields = w.JSON()
	}
	return s
}

// ShowNumbers returns the results of Add as the `fields` of a published event, nil if there are
// none.
func ShowNumbers(numbers map[string]int64) json.RawMessage {
	if len(numbers) == 0 {
		return nil
	}
	out := []byte{'{'}
	for i, name := range slices.Sorted(maps.Keys(numbers)) {
		if i > 0 {
			out = append(out, ',')
		}
		out = strconv.AppendInt(appendName(out, name), numbers[name], 10)
	}
	return append(out, '}')
}
