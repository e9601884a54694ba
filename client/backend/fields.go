package backend

import (
	"encoding/json"
	"fmt"
	"time"

	"switchboard/client"
)

// decodeFields decodes fields in the form of the API: [id, value], [id, value, until] or [id,
// value, until, "away"], or null for an absent one, which is nil in the result. Of a field that is
// too large for an answer only [id] is there.
func decodeFields(raw map[string]json.RawMessage) (map[string]*client.Field, error) {
	if raw == nil {
		return nil, nil
	}
	fields := make(map[string]*client.Field, len(raw))
	for name, text := range raw {
		var parts []json.RawMessage
		if err := json.Unmarshal(text, &parts); err != nil {
			return nil, fmt.Errorf("field %s: %w", name, err)
		}
		if len(parts) == 0 {
			fields[name] = nil
			continue
		}
		f := &client.Field{Away: len(parts) > 3}
		err := json.Unmarshal(parts[0], &f.ID)
		if len(parts) > 1 {
			f.Value = parts[1]
		}
		if len(parts) > 2 && err == nil {
			var until int64
			if err = json.Unmarshal(parts[2], &until); until > 0 {
				f.Until = time.UnixMilli(until)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", name, err)
		}
		fields[name] = f
	}
	return fields, nil
}

// encodeField is the inverse of decodeFields for one field.
func encodeField(f *client.Field) json.RawMessage {
	if f == nil {
		return json.RawMessage("null")
	}
	parts := []any{f.ID}
	if f.Value != nil {
		parts = append(parts, f.Value)
	}
	if !f.Until.IsZero() || f.Away {
		until := int64(0)
		if !f.Until.IsZero() {
			until = f.Until.UnixMilli()
		}
		parts = append(parts, until)
	}
	if f.Away {
		parts = append(parts, "away")
	}
	text, _ := json.Marshal(parts) // values that were decoded can be encoded
	return text
}

// Fields are fields of a channel by name, in the form of the API when they are encoded as JSON. An
// absent field that was asked for is nil.
type Fields map[string]*client.Field

// UnmarshalJSON implements json.Unmarshaler.
func (f *Fields) UnmarshalJSON(text []byte) error {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(text, &raw); err != nil {
		return err
	}
	fields, err := decodeFields(raw)
	*f = fields
	return err
}

// MarshalJSON implements json.Marshaler.
func (f Fields) MarshalJSON() ([]byte, error) {
	raw := make(map[string]json.RawMessage, len(f))
	for name, field := range f {
		raw[name] = encodeField(field)
	}
	return json.Marshal(raw)
}
