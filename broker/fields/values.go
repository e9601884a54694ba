package fields

import (
	"bytes"
	"encoding/json"
	"math"
	"strconv"
	"time"

	"switchboard/broker/namespace"
	"switchboard/internal/payload"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// value checks the value of a field and returns a compact copy.
func (b *builder) value(name string, rule *namespace.FieldRule, text []byte) ([]byte, error) {
	most := b.limits.FieldBytes
	if rule != nil && rule.Bytes > 0 && (most == 0 || rule.Bytes < most) {
		most = rule.Bytes
	}
	if most > 0 && len(text) > most {
		return nil, wire.Errorf(wire.TooLarge, "field %s: %d bytes, at most %d are allowed", name, len(text), most)
	}
	if len(text) == 0 {
		return nil, wire.Errorf(wire.BadRequest, "field %s: the value is missing", name)
	}
	value, err := payload.Compact(text, len(text))
	if err != nil {
		return nil, about(name, err)
	}
	return value, nil
}

// about returns err as an error about a field.
func about(name string, err error) error {
	own := wire.JSONError(err).(*wire.Error)
	return wire.Errorf(own.Code, "field %s: %s", name, own.Message)
}

// parseAdd parses a number, or an object with by, min and max.
func parseAdd(op *state.Op, text []byte) error {
	op.Min, op.Max = -state.MaxNumber, state.MaxNumber
	text = bytes.TrimSpace(text)
	if len(text) == 0 || text[0] != '{' {
		return parseNumber(op.Field, "add", text, &op.By)
	}
	var members wire.Values
	if err := json.Unmarshal(text, &members); err != nil {
		return about(op.Field, err)
	}
	hasBy := false
	for _, member := range members {
		var into *int64
		switch member.Name {
		case "by":
			into, hasBy = &op.By, true
		case "min":
			into = &op.Min
		case "max":
			into = &op.Max
		default:
			return wire.Errorf(wire.BadRequest, "field %s: add: %.40q is none of by, min and max", op.Field, member.Name)
		}
		if err := parseNumber(op.Field, member.Name, member.JSON, into); err != nil {
			return err
		}
	}
	switch {
	case !hasBy:
		return wire.Errorf(wire.BadRequest, "field %s: add: by is missing", op.Field)
	case op.Min > op.Max:
		return wire.Errorf(wire.BadRequest, "field %s: add: min is above max", op.Field)
	}
	return nil
}

// parseNumber parses a whole number within state.MaxNumber.
func parseNumber(field, name string, text []byte, into *int64) error {
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil || n < -state.MaxNumber || n > state.MaxNumber {
		return wire.Errorf(wire.BadRequest, "field %s: %s: %.40s is not a whole number within ±%d", field, name, text, int64(state.MaxNumber))
	}
	*into = n
	return nil
}

// addConditions adds the conditions of the change to the update. They reveal values, so the writer
// must be allowed to read the state.
func (b *builder) addConditions() error {
	if len(b.If) == 0 {
		return nil
	}
	if !b.set.Allows(b.w.Subject, namespace.State, b.channel) {
		_, why := b.set.Decide(b.w.Subject, namespace.State, b.channel)
		return wire.Errorf(wire.Forbidden, "if: field %.128s: a condition needs the right to read the state: %s", b.If[0].Name, why)
	}
	b.update.If = make([]state.Condition, len(b.If))
	for i, c := range b.If {
		if err := state.CheckName(c.Name); err != nil {
			return err
		}
		if state.IsHidden(c.Name) && !b.w.Backend {
			return wire.Errorf(wire.Forbidden, "if: field %s: only the backend may see it", c.Name)
		}
		cond := &b.update.If[i]
		cond.Field = c.Name
		if text := string(bytes.TrimSpace(c.JSON)); text == "true" {
			cond.Kind = state.Exists
		} else if id, err := strconv.ParseInt(text, 10, 64); err != nil || id < 0 {
			return wire.Errorf(wire.BadRequest, "if: field %s: %.40s is neither an id nor 0 nor true", c.Name, text)
		} else if id == 0 {
			cond.Kind = state.IsAbsent
		} else {
			cond.Kind, cond.ID = state.IsID, id
		}
	}
	return nil
}

// lease is the ttl of a change.
type lease struct {
	given    bool
	duration time.Duration
}

func parseLease(seconds *float64) (lease, error) {
	if seconds == nil {
		return lease{}, nil
	}
	s := *seconds
	if math.IsNaN(s) || s < 0 || s > namespace.MaxLease.Seconds() {
		return lease{}, wire.Errorf(wire.BadRequest, "ttl: %v is not within 0 and %.0f seconds", s, namespace.MaxLease.Seconds())
	}
	d := time.Duration(s * float64(time.Second))
	if s > 0 {
		d = max(d, time.Millisecond)
	}
	return lease{true, d}, nil
}
