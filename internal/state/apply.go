package state

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"switchboard/internal/wire"
)

// update is an Update that is being checked and applied.
type update struct {
	*change
	*Update
	planned map[string]*plan // by field
	added   []string         // fields that the update creates, in order
}

// plan is what an operation makes of its field.
type plan struct {
	op     *Op
	old    *Field // the live field, or nil
	gone   bool   // the update removes the field
	value  []byte // the new value; nil if it stays
	number int64  // of Add
}

// Apply applies u at the time now. next assigns the ids of the entries. The error is a *Refusal if
// u was refused; the Result is valid in both cases.
func (s *State) Apply(u *Update, now int64, next func() int64) (Result, error) {
	a := &update{change: s.begin(now, next), Update: u, planned: make(map[string]*plan, len(u.Ops))}
	if err := a.check(); err != nil {
		return a.finish(), err
	}
	a.entry.By, a.entry.Data = u.Client, u.Data
	id := next()
	for i := range u.Ops {
		a.apply(id, &u.Ops[i])
	}
	if u.Keep > 0 {
		s.keepUntil = now + u.Keep.Milliseconds()
	} else {
		s.keepUntil = 0
	}
	a.result.ID = id
	a.result.Entries = append(a.result.Entries, Logged{id, a.entry})
	return a.result, nil
}

// refuse returns a Refusal about a field, which shows its current value. The message begins with
// the field's name.
func (a *update) refuse(code wire.ErrorCode, field, format string, args ...any) *Refusal {
	return &Refusal{
		Err:    wire.Errorf(code, "field %s: %s", field, fmt.Sprintf(format, args...)),
		Field:  field,
		Fields: map[string]*Field{field: a.current(field)},
	}
}

// current returns a copy of the live field, or nil.
func (a *update) current(name string) *Field {
	if f := a.fields[name]; f != nil {
		return f.clone()
	}
	return nil
}

func (a *update) check() error {
	if o := a.owners[a.Client]; a.Client != "" && o != nil &&
		(o.generation > a.Generation || o.generation == a.Generation && o.ended > 0) {
		return &Refusal{Err: wire.Errorf(wire.Conflict, "the client is connected elsewhere, or its connection has ended")}
	}
	if err := a.checkConditions(); err != nil {
		return err
	}
	for i := range a.Ops {
		if err := a.plan(&a.Ops[i]); err != nil {
			return err
		}
	}
	for i := range a.Ops {
		if err := a.checkParent(&a.Ops[i]); err != nil {
			return err
		}
	}
	if err := a.checkOwned(); err != nil {
		return err
	}
	return a.checkLimits()
}

func (a *update) checkConditions() error {
	differ := make(map[string]*Field)
	first := ""
	for _, cond := range a.If {
		f := a.fields[cond.Field]
		ok := f != nil
		switch cond.Kind {
		case IsID:
			ok = f != nil && f.ID == cond.ID
		case IsAbsent:
			ok = f == nil
		}
		if !ok {
			if len(differ) == 0 {
				first = cond.Field
			}
			differ[cond.Field] = a.current(cond.Field)
		}
	}
	if len(differ) == 0 {
		return nil
	}
	r := a.refuse(wire.Conflict, first, "it does not meet the condition")
	r.Fields = differ
	return r
}

// plan checks one operation against its field.
func (a *update) plan(op *Op) error {
	f := a.fields[op.Field]
	if op.Claim && f != nil && f.Holder != a.Writer {
		return a.refuse(wire.Conflict, op.Field, "another user holds it")
	}
	p := &plan{op: op, old: f}
	a.planned[op.Field] = p
	switch op.Kind {
	case Set:
		p.value = op.Value
	case Delete:
		p.gone = true
	case Touch:
		if f == nil {
			return a.refuse(wire.NotFound, op.Field, "there is no such field")
		}
	case Add:
		if err := a.planAdd(op, p); err != nil {
			return err
		}
	}
	if f == nil && !p.gone {
		a.added = append(a.added, op.Field)
	}
	return nil
}

func (a *update) planAdd(op *Op, p *plan) error {
	old := int64(0)
	if p.old != nil {
		n, ok := parseNumber(p.old.Value)
		if !ok {
			return a.refuse(wire.BadRequest, op.Field, "its value is not a whole number")
		}
		old = n
	}
	sum := old + op.By // both are within MaxNumber, so that this cannot overflow
	if sum < max(op.Min, -MaxNumber) || sum > min(op.Max, MaxNumber) {
		return a.refuse(wire.OutOfRange, op.Field, "the result %d is out of bounds", sum)
	}
	p.value, p.number = strconv.AppendInt(nil, sum, 10), sum
	return nil
}

// parseNumber parses a value that Add can change: an integer within MaxNumber, as JSON writes it.
func parseNumber(value []byte) (int64, bool) {
	text := string(value)
	n, err := strconv.ParseInt(text, 10, 64)
	return n, err == nil && n >= -MaxNumber && n <= MaxNumber && strconv.FormatInt(n, 10) == text
}

// checkParent checks the parent of a field that the update writes.
func (a *update) checkParent(op *Op) error {
	p, name := a.planned[op.Field], op.Parent
	if name == "" && p.old != nil {
		name = p.old.Parent
	}
	if name == "" || p.gone {
		return nil
	}
	parent, planned := a.fields[name], a.planned[name]
	exists, isPart, holder := parent != nil, false, ""
	if parent != nil {
		isPart, holder = parent.Parent != "", parent.Holder
	}
	if planned != nil {
		exists, isPart = !planned.gone, isPart || planned.op.Parent != ""
		if planned.op.Kind == Set || parent == nil {
			holder = a.Writer
		}
	}
	switch {
	case op.Parent == op.Field, op.Parent != "" && (isPart || len(a.children[op.Field]) > 0):
		return a.refuse(wire.BadRequest, op.Field, "a field that is part of another one cannot have parts")
	case !exists:
		return a.refuse(wire.NotFound, op.Field, "its parent %s does not exist", name)
	case op.HeldParent && holder != a.Writer:
		return a.refuse(wire.Forbidden, op.Field, "another user holds its parent %s", name)
	}
	return nil
}

// checkOwned checks how many fields the client would own.
func (a *update) checkOwned() error {
	if a.Owned == 0 || a.Client == "" {
		return nil
	}
	owned := 0
	if o := a.owners[a.Client]; o != nil {
		owned = len(o.fields)
	}
	first := ""
	for i := range a.Ops {
		op := &a.Ops[i]
		mine := a.owns(op.Field)
		switch {
		case op.Kind != Delete && op.Own == Own && !mine:
			if owned++; first == "" {
				first = op.Field
			}
		case mine && (op.Kind == Delete || op.Own == Disown):
			owned--
		}
	}
	if first != "" && owned > a.Owned {
		r := a.refuse(wire.Full, first, "the client would own %d fields, at most %d are allowed", owned, a.Owned)
		r.Max = a.Owned
		return r
	}
	return nil
}

// owns reports whether the client owns the field.
func (a *update) owns(field string) bool {
	o := a.owners[a.Client]
	if o == nil {
		return false
	}
	_, found := o.fields[field]
	return found
}

// checkLimits checks the groups that the update adds to, and the number and size of all fields.
func (a *update) checkLimits() error {
	removed := make(map[string]bool) // fields that end with a parent that the update deletes
	for name, p := range a.planned {
		if p.gone && p.old != nil {
			for child := range a.children[name] {
				if a.planned[child] == nil {
					removed[child] = true
				}
			}
		}
	}
	checked := make(map[string]bool)
	for _, name := range a.added {
		group := Group(name)
		limit := a.groupMax(name, group)
		if group == "" || checked[group] || limit < 0 {
			continue
		}
		checked[group] = true
		if n := a.count(group, removed); n > limit {
			return a.full(group, limit, n)
		}
	}
	if len(a.added) > 0 && a.Fields > 0 {
		if n := a.count("", removed); n > a.Fields {
			r := a.refuse(wire.Full, a.added[0], "the channel would have %d fields, at most %d are allowed", n, a.Fields)
			r.Max = a.Fields
			return r
		}
	}
	if a.Bytes > 0 {
		if before, after := a.bytes, a.sizeAfter(removed); after > a.Bytes && after > before {
			return &Refusal{Err: wire.Errorf(wire.TooLarge, "the fields of the channel would have %d bytes, at most %d are allowed", after, a.Bytes)}
		}
	}
	return nil
}

// groupMax returns the limit of the group to which a new field belongs, or -1 for none.
func (a *update) groupMax(field, group string) int {
	limit := -1
	if op := a.planned[field].op; op.GroupMax > 0 {
		limit = op.GroupMax
	}
	name := maxPrefix + group
	var value []byte
	if p := a.planned[name]; p != nil && (p.gone || p.value != nil) {
		value = p.value
	} else if f := a.fields[name]; f != nil {
		value = f.Value
	}
	if n, ok := parseNumber(value); ok && n >= 0 && (limit < 0 || n < int64(limit)) {
		limit = int(min(n, math.MaxInt32))
	}
	return limit
}

// count returns how many fields with the prefix there are after the update.
func (a *update) count(prefix string, removed map[string]bool) (n int) {
	for name := range a.fields {
		if p := a.planned[name]; strings.HasPrefix(name, prefix) && !removed[name] && (p == nil || !p.gone) {
			n++
		}
	}
	for _, name := range a.added {
		if strings.HasPrefix(name, prefix) {
			n++
		}
	}
	return n
}

// MaxFullFields is how many fields of a group a Refusal with Full shows.
const MaxFullFields = 64

// full returns the refusal for a group that has no room.
func (a *update) full(group string, limit, n int) error {
	names, fields, _ := a.Read(a.now, group, "", MaxFullFields, 0)
	r := &Refusal{
		Err:   wire.Errorf(wire.Full, "group %s would have %d fields, at most %d are allowed", group, n, limit),
		Group: group, Max: limit, Fields: make(map[string]*Field, len(names)),
	}
	for i, name := range names {
		r.Fields[name] = fields[i]
	}
	return r
}

// sizeAfter returns the bytes of all fields after the update.
func (a *update) sizeAfter(removed map[string]bool) int {
	size := a.bytes
	for name := range removed {
		size -= a.fields[name].size(name)
	}
	for name, p := range a.planned {
		if p.old != nil && (p.gone || p.value != nil) {
			size -= p.old.size(name)
		}
		if !p.gone && p.value != nil {
			size += len(name) + len(p.value)
		}
	}
	return size
}

// apply writes the field of an operation.
func (a *update) apply(id int64, op *Op) {
	p := a.planned[op.Field]
	if p.gone {
		a.entry.Del = append(a.entry.Del, a.remove(op.Field)...)
		if p.old == nil {
			a.entry.Del = append(a.entry.Del, op.Field)
		}
		return
	}
	f := a.fields[op.Field]
	created := f == nil
	if created {
		f = &Field{}
		a.fields[op.Field] = f
		a.bytes += len(op.Field)
	}
	a.setValue(id, op, p, f)
	if op.Kind != Add || created {
		a.setLease(op, f)
	} else if f.Until() > 0 {
		a.entry.setUntil(op.Field, f.Until())
	}
	if op.Parent != "" {
		a.setParent(op.Field, f, op.Parent)
	}
	switch op.Own {
	case Own:
		f.Grace = op.Grace.Milliseconds()
		if op.Grace < 0 {
			f.Grace = AwayStays
		}
		a.addOwner(op.Field, f, a.Update)
	case Disown:
		a.disown(op.Field, f, a.Client)
	}
}

// setValue writes the value of Set and Add.
func (a *update) setValue(id int64, op *Op, p *plan, f *Field) {
	if p.value == nil {
		return
	}
	a.bytes += len(p.value) - len(f.Value)
	f.ID, f.Value = id, p.value
	if op.Kind == Set || f.Holder == "" {
		f.Holder = a.Writer
	}
	if a.entry.Set == nil {
		a.entry.Set = make(map[string]rawValue)
	}
	a.entry.Set[op.Field] = p.value
	if op.Kind == Add {
		if a.result.Numbers == nil {
			a.result.Numbers = make(map[string]int64)
		}
		a.result.Numbers[op.Field] = p.number
	}
}

// setLease sets the lease and reports the new end.
func (a *update) setLease(op *Op, f *Field) {
	f.Lease = 0
	if op.TTL > 0 {
		f.Lease = a.now + max(op.TTL.Milliseconds(), 1)
	}
	if until := f.Until(); until > 0 || op.Kind == Touch {
		a.entry.setUntil(op.Field, until)
	}
}
