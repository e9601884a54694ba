package linear

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// result is what the model makes of an update.
type result struct {
	after   map[string]field
	numbers map[string]int64

	code  wire.ErrorCode // of a refusal, else ""
	group string
	max   int
	shown []string // fields that the refusal shows
}

func refuse(code wire.ErrorCode, shown ...string) result { return result{code: code, shown: shown} }

// decide applies an update to fields, none of which is due. id is that of the update; without one,
// only the refusal counts.
func decide(before map[string]field, u *state.Update, id int64) result {
	if differ := unmet(before, u.If); len(differ) > 0 {
		return refuse(wire.Conflict, differ...)
	}
	r := result{after: maps.Clone(before)}
	if r.after == nil {
		r.after = make(map[string]field)
	}
	for _, op := range u.Ops {
		if code := r.operate(op, u.Writer, id); code != "" {
			return refuse(code, op.Field)
		}
	}
	if full := r.checkGroups(before, u.Ops); full.code != "" {
		return full
	}
	for _, op := range u.Ops {
		if u.Fields > 0 && len(r.after) > u.Fields && r.creates(before, op) {
			return result{code: wire.Full, max: u.Fields, shown: []string{op.Field}}
		}
	}
	if size := sizeOf(r.after); u.Bytes > 0 && size > u.Bytes && size > sizeOf(before) {
		return refuse(wire.TooLarge)
	}
	return r
}

// unmet returns the fields that do not meet their conditions.
func unmet(fields map[string]field, conditions []state.Condition) (differ []string) {
	for _, cond := range conditions {
		f, found := fields[cond.Field]
		met := found
		switch cond.Kind {
		case state.IsAbsent:
			met = !found
		case state.IsID:
			met = found && f.id == cond.ID
		}
		if !met {
			differ = append(differ, cond.Field)
		}
	}
	return differ
}

// operate does one operation, or returns why it is refused.
func (r *result) operate(op state.Op, writer string, id int64) wire.ErrorCode {
	f, found := r.after[op.Field]
	lease := int64(0)
	if op.TTL > 0 {
		lease = timeOf(id) + op.TTL.Milliseconds()
	}
	if op.Claim && found && f.holder != writer {
		return wire.Conflict
	}
	switch op.Kind {
	case state.Delete:
		delete(r.after, op.Field)
		return ""
	case state.Touch:
		if !found {
			return wire.NotFound
		}
		f.until = lease
	case state.Set:
		f = field{value: string(op.Value), id: id, until: lease, holder: writer}
	case state.Add:
		if !found {
			f = field{value: "0", until: lease, holder: writer}
		}
		n, err := strconv.ParseInt(f.value, 10, 64)
		if err != nil {
			return wire.BadRequest
		}
		if n += op.By; n < op.Min || n > op.Max {
			return wire.OutOfRange
		}
		f.value, f.id = strconv.FormatInt(n, 10), id
		if r.numbers == nil {
			r.numbers = make(map[string]int64)
		}
		r.numbers[op.Field] = n
	}
	r.after[op.Field] = f
	return ""
}

// creates reports whether an operation creates its field.
func (r *result) creates(before map[string]field, op state.Op) bool {
	_, existed := before[op.Field]
	return !existed && op.Kind != state.Delete
}

// checkGroups returns the refusal for the first group that has no room.
func (r *result) checkGroups(before map[string]field, ops []state.Op) result {
	for _, op := range ops {
		slash := strings.Index(op.Field, "/")
		if slash < 0 || op.GroupMax == 0 || !r.creates(before, op) {
			continue
		}
		group, limit := op.Field[:slash+1], op.GroupMax
		if n, err := strconv.Atoi(r.after["$max/"+group].value); err == nil && n < limit {
			limit = n
		}
		if len(namesOf(r.after, group)) > limit {
			return result{code: wire.Full, group: group, max: limit, shown: namesOf(before, group)}
		}
	}
	return result{}
}

// namesOf returns the names of the fields of a group.
func namesOf(fields map[string]field, group string) (names []string) {
	for name := range fields {
		if strings.HasPrefix(name, group) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func sizeOf(fields map[string]field) (size int) {
	for name, f := range fields {
		size += len(name) + len(f.value)
	}
	return size
}

// refuses reports whether the model refuses the update in the same way.
func (s *snapshot) refuses(u *state.Update, got *state.Refusal) bool {
	want := decide(s.fields, u, 0)
	if want.code == "" || want.code != got.Err.Code || want.group != got.Group || want.max != got.Max || len(want.shown) != len(got.Fields) {
		return false
	}
	for _, name := range want.shown {
		shown, found := got.Fields[name]
		f, exists := s.fields[name]
		if !found || exists != (shown != nil) || exists && !f.shownAs(shown) {
			return false
		}
	}
	return true
}

// shownAs reports whether a page or a refusal shows the field correctly.
func (f field) shownAs(shown *state.Field) bool {
	return shown.ID == f.id && string(shown.Value) == f.value && shown.Until() == f.until
}
