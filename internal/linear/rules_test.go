package linear

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// result is what the model makes of an update.
type result struct {
	after   contents
	numbers map[string]int64

	code  wire.ErrorCode // of a refusal, else ""
	group string
	max   int
	shown []string // fields that the refusal shows
}

func refuse(code wire.ErrorCode, shown ...string) result { return result{code: code, shown: shown} }

// decision is an update that is being decided.
type decision struct {
	*state.Update
	id     int64
	before contents // without fields that are due
	result
}

// decide applies an update to fields, none of which is due. id is that of the update; without one,
// only the refusal counts.
func decide(before contents, u *state.Update, id int64) result {
	d := &decision{Update: u, id: id, before: before}
	s, found := before.sessions[u.Client]
	if found && u.Client != "" && s.fences(state.Connection{Client: u.Client, Generation: u.Generation, Server: u.Server}) {
		return refuse(wire.Unavailable)
	}
	if differ := unmet(before.fields, u.If); len(differ) > 0 {
		return refuse(wire.Conflict, differ...)
	}
	d.after = before.clone()
	for _, op := range u.Ops {
		if code := d.write(op); code != "" {
			return refuse(code, op.Field)
		}
	}
	for _, op := range u.Ops {
		if code := d.checkParent(op); code != "" {
			return refuse(code, op.Field)
		}
	}
	if field := d.overOwned(); field != "" {
		return result{code: wire.Full, max: u.Owned, shown: []string{field}}
	}
	for _, op := range u.Ops {
		if op.Kind == state.Delete {
			d.after.remove(op.Field)
		}
	}
	if r := d.checkLimits(); r.code != "" {
		return r
	}
	d.changeOwners()
	return d.result
}

// checkLimits returns the refusal for a limit that the fields exceed.
func (d *decision) checkLimits() result {
	if full := d.checkGroups(); full.code != "" {
		return full
	}
	for _, op := range d.Ops {
		if d.Limits.Fields > 0 && len(d.after.fields) > d.Limits.Fields && d.creates(op) {
			return result{code: wire.Full, max: d.Limits.Fields, shown: []string{op.Field}}
		}
	}
	if size := sizeOf(d.after.fields); d.Bytes > 0 && size > d.Bytes && size > sizeOf(d.before.fields) {
		return refuse(wire.TooLarge)
	}
	return result{}
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

// write writes the value, the lease and the parent of one field, or returns why it is refused.
func (d *decision) write(op state.Op) wire.ErrorCode {
	f, found := d.before.fields[op.Field]
	lease := int64(0)
	if op.TTL > 0 {
		lease = timeOf(d.id) + op.TTL.Milliseconds()
	}
	if op.Claim && found && f.holder != d.Writer {
		return wire.Conflict
	}
	switch op.Kind {
	case state.Delete:
		return ""
	case state.Touch:
		if !found {
			return wire.NotFound
		}
		f.lease = lease
	case state.Set:
		f.value, f.id, f.lease, f.holder = string(op.Value), d.id, lease, d.Writer
	case state.Add:
		if !found {
			f = field{value: "0", lease: lease, holder: d.Writer}
		}
		n, err := strconv.ParseInt(f.value, 10, 64)
		if err != nil {
			return wire.BadRequest
		}
		if n += op.By; n < op.Min || n > op.Max {
			return wire.OutOfRange
		}
		f.value, f.id = strconv.FormatInt(n, 10), d.id
		if d.numbers == nil {
			d.numbers = make(map[string]int64)
		}
		d.numbers[op.Field] = n
	}
	f.parent = cmp.Or(op.Parent, f.parent)
	d.after.fields[op.Field] = f
	return ""
}

// checkParent returns why the parent of a field forbids an operation, or "". d.after still has the
// fields that the update deletes.
func (d *decision) checkParent(op state.Op) wire.ErrorCode {
	old, existed := d.before.fields[op.Field]
	name := cmp.Or(old.parent, op.Parent)
	if op.Kind != state.Delete {
		name = cmp.Or(op.Parent, old.parent)
	}
	parent, live := d.after.fields[name]
	if op.Kind != state.Delete && slices.ContainsFunc(d.Ops, func(o state.Op) bool { return o.Kind == state.Delete && o.Field == name }) {
		parent, live = field{}, false
	}
	switch {
	case name == "", op.Kind == state.Delete && (!existed || !op.HeldParent):
		return ""
	case op.Parent != "" && op.Kind != state.Delete && (parent.parent != "" || d.hasParts(op.Field)):
		return wire.BadRequest
	case !live:
		return wire.NotFound
	case op.HeldParent && parent.holder != d.Writer:
		return wire.Forbidden
	}
	return ""
}

// hasParts reports whether a field has had parts before the update.
func (d *decision) hasParts(name string) bool {
	for _, f := range d.before.fields {
		if f.parent == name {
			return true
		}
	}
	return false
}

// overOwned returns the first field that makes the client own too many, or "".
func (d *decision) overOwned() (first string) {
	owned := len(d.before.ownedBy(d.Client))
	for _, op := range d.Ops {
		mine := slices.Contains(d.before.fields[op.Field].owners, d.Client)
		switch {
		case op.Kind != state.Delete && op.Own == state.Own && !mine:
			first = cmp.Or(first, op.Field)
			owned++
		case mine && (op.Kind == state.Delete || op.Own == state.Disown):
			owned--
		}
	}
	if d.Owned == 0 || owned <= d.Owned {
		return ""
	}
	return first
}

// changeOwners makes the client an owner, or ends its ownership.
func (d *decision) changeOwners() {
	for _, op := range d.Ops {
		if op.Kind != state.Delete && op.Own == state.Disown {
			d.after.disown(op.Field, d.Client, timeOf(d.id))
		}
	}
	owns := false
	for _, op := range d.Ops {
		f, found := d.after.fields[op.Field]
		if op.Kind == state.Delete || op.Own != state.Own || !found {
			continue
		}
		if f.grace = op.Grace.Milliseconds(); op.Grace < 0 {
			f.grace = state.AwayStays
		}
		if owns = true; !slices.Contains(f.owners, d.Client) {
			f.owners = slices.Sorted(slices.Values(append(slices.Clone(f.owners), d.Client)))
		}
		d.after.fields[op.Field] = f
	}
	if owns {
		d.after.connect(state.Connection{Client: d.Client, Generation: d.Generation, Server: d.Server}, timeOf(d.id))
	}
}

// creates reports whether an operation creates its field.
func (d *decision) creates(op state.Op) bool {
	_, existed := d.before.fields[op.Field]
	return !existed && op.Kind != state.Delete
}

// checkGroups returns the refusal for the first group that has no room.
func (d *decision) checkGroups() result {
	for _, op := range d.Ops {
		slash := strings.Index(op.Field, "/")
		if slash < 0 || op.GroupMax == 0 || !d.creates(op) {
			continue
		}
		group, limit := op.Field[:slash+1], op.GroupMax
		if n, err := strconv.Atoi(d.after.fields["$max/"+group].value); err == nil && n < limit {
			limit = n
		}
		if len(namesOf(d.after.fields, group)) > limit {
			return result{code: wire.Full, group: group, max: limit, shown: namesOf(d.before.fields, group)}
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
	want := decide(s.contents, u, 0)
	if want.code == "" || want.code != got.Err.Code || want.group != got.Group || want.max != got.Max {
		return false
	}
	if u.Generation == unknownGeneration && !showsFields(got.Err.Code) {
		return true
	}
	if len(want.shown) != len(got.Fields) {
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
	return shown.ID == f.id && string(shown.Value) == f.value && shown.Until() == f.until() && (shown.Away != 0) == (f.away != 0)
}
