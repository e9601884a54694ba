package state

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"switchboard/internal/wire"
)

// oracle is a second, slow implementation of State. It keeps no counters and no indexes: it changes
// a copy of all fields, and then looks at the copy.
type oracle struct {
	fields    map[string]oracleField
	conns     map[string]oracleConn
	keepUntil int64
}

type oracleField struct {
	id             int64
	value          string
	lease, away    int64
	grace          int64
	holder, parent string
	owners         string // ,a,b,
}

// oracleConn is what the oracle remembers of a client.
type oracleConn struct {
	lowest    int64 // the lowest generation that may change the state
	connected bool  // the lowest generation owns, or has owned, fields
	server    string
	lost      string // the server that ended while it held the connection
	seen      int64  // the highest generation that was recorded
	endedAt   int64
}

func newOracle() *oracle {
	return &oracle{fields: map[string]oracleField{}, conns: map[string]oracleConn{}}
}

func (f oracleField) ownedBy(client string) bool { return strings.Contains(f.owners, ","+client+",") }

func (f oracleField) ownerList() []string {
	return strings.FieldsFunc(f.owners, func(r rune) bool { return r == ',' })
}

func withOwners(f oracleField, owners []string) oracleField {
	slices.Sort(owners)
	if f.owners = ""; len(owners) > 0 {
		f.owners = "," + strings.Join(slices.Compact(owners), ",") + ","
	}
	return f
}

// isDue reports whether a field has ended.
func (f oracleField) isDue(now int64) bool {
	return f.lease > 0 && f.lease <= now || f.away > 0 && f.away <= now
}

// settle makes fields away or not as their owners are connected, and removes parts without a
// parent.
func (o *oracle) settle(fields map[string]oracleField, now int64) {
	for name, f := range fields {
		connected := slices.ContainsFunc(f.ownerList(), func(client string) bool { return o.conns[client].connected })
		switch {
		case f.owners == "":
			f.away, f.grace = 0, 0
		case connected:
			f.away = 0
		case f.away == 0 && f.grace == 0:
			delete(fields, name)
			continue
		case f.away == 0 && f.grace > 0:
			f.away = now + f.grace
		case f.away == 0:
			f.away = AwayStays
		}
		fields[name] = f
	}
	removeOrphans(fields)
}

func removeOrphans(fields map[string]oracleField) {
	maps.DeleteFunc(fields, func(_ string, f oracleField) bool {
		if f.parent == "" {
			return false
		}
		_, found := fields[f.parent]
		return !found
	})
}

// due removes what has ended.
func (o *oracle) due(now int64) {
	if o.keepUntil > 0 && o.keepUntil <= now {
		clear(o.fields)
	}
	maps.DeleteFunc(o.fields, func(_ string, f oracleField) bool { return f.isDue(now) })
	removeOrphans(o.fields)
}

// reasons returns why each field that is due ends.
func (o *oracle) reasons(now int64) map[string]string {
	reasons := map[string]string{}
	if o.keepUntil > 0 && o.keepUntil <= now { // all fields are cleared instead
		return reasons
	}
	for _, name := range slices.Sorted(maps.Keys(o.fields)) {
		f := o.fields[name]
		if reasons[name] != "" || !f.isDue(now) {
			continue
		}
		reasons[name] = Expired
		if f.away > 0 && (f.lease == 0 || f.away <= f.lease) {
			reasons[name] = Left
		}
		for child, part := range o.fields {
			if part.parent == name && reasons[child] == "" {
				reasons[child] = reasons[name]
			}
		}
	}
	return reasons
}

// isFenced reports whether a connection may not change the state.
func (o *oracle) isFenced(client string, generation int64, server string) bool {
	c, known := o.conns[client]
	return known && (generation < c.lowest || generation == c.lowest && c.lost != "" && c.lost == server)
}

// oracleRefusal is what the oracle expects of a Refusal.
type oracleRefusal struct {
	code   wire.ErrorCode
	field  string
	group  string
	limit  int
	fields []string
}

func (r *oracleRefusal) String() string {
	if r == nil {
		return "accepted"
	}
	return fmt.Sprintf("%s field=%s group=%s max=%d fields=%v", r.code, r.field, r.group, r.limit, r.fields)
}

// ofRefusal returns the comparable part of a Refusal.
func ofRefusal(err error) *oracleRefusal {
	r, ok := err.(*Refusal)
	if !ok {
		return nil
	}
	return &oracleRefusal{r.Err.Code, r.Field, r.Group, r.Max, slices.Sorted(maps.Keys(r.Fields))}
}

func refuseField(code wire.ErrorCode, field string) *oracleRefusal {
	return &oracleRefusal{code: code, field: field, fields: []string{field}}
}

// update applies an update, or says how it is refused.
func (o *oracle) update(u *Update, now, id int64) *oracleRefusal {
	o.due(now)
	if u.Client != "" && o.isFenced(u.Client, u.Generation, u.Server) {
		return &oracleRefusal{code: wire.Unavailable}
	}
	if r := o.conditions(u); r != nil {
		return r
	}
	u = o.withNumbers(u)
	after := maps.Clone(o.fields)
	for i := range u.Ops {
		if r := o.operation(after, u, &u.Ops[i], now, id); r != nil {
			return r
		}
	}
	for _, op := range u.Ops {
		if op.Kind == Delete {
			delete(after, op.Field)
		}
	}
	if r := o.parents(after, u); r != nil {
		return r
	}
	removeOrphans(after)
	if r := o.owned(u); r != nil {
		return r
	}
	if r := o.limits(after, u); r != nil {
		return r
	}
	o.own(after, u, now)
	o.fields, o.keepUntil = after, 0
	if u.Keep > 0 {
		o.keepUntil = now + u.Keep.Milliseconds()
	}
	return nil
}

func (o *oracle) conditions(u *Update) *oracleRefusal {
	r := &oracleRefusal{code: wire.Conflict}
	for _, cond := range u.If {
		f, found := o.fields[cond.Field]
		if cond.Kind == AtMost || cond.Kind == Exists && found || cond.Kind == IsAbsent && !found || cond.Kind == IsID && found && f.id == cond.ID {
			continue
		}
		if r.fields = append(r.fields, cond.Field); len(r.fields) == 1 {
			r.field = cond.Field
		}
	}
	for _, cond := range u.If {
		if cond.Kind == AtMost && r.fields == nil && countFields(o.fields, cond.Field) > cond.Max {
			return &oracleRefusal{code: wire.Full, group: cond.Field, limit: cond.Max}
		}
	}
	if r.fields == nil {
		return nil
	}
	slices.Sort(r.fields)
	return r
}

// withNumbers returns an update without a counter that does the same. If the counter is not a
// number, the first operation is refused.
func (o *oracle) withNumbers(u *Update) *Update {
	if u.Counter == "" {
		return u
	}
	last, _ := strconv.Atoi(o.fields[u.Counter].value)
	take := max(u.Take, 1)
	out := *u
	out.Counter, out.Ops = "", []Op{{Field: u.Counter, Kind: Add, By: int64(take), Min: -MaxNumber, Max: MaxNumber}}
	for _, op := range u.Ops {
		for i := 1; i <= take; i++ {
			mark, n := strings.Replace(fmt.Sprintf("{n%d}", i), "{n1}", "{n}", 1), strconv.Itoa(last+i)
			op.Field, op.Parent = strings.ReplaceAll(op.Field, mark, n), strings.ReplaceAll(op.Parent, mark, n)
			if op.Numbered {
				op.Value = []byte(strings.ReplaceAll(string(op.Value), mark, n))
			}
		}
		out.Ops = append(out.Ops, op)
	}
	return &out
}

// holderOf returns the holder of an operation.
func holderOf(u *Update, op *Op) string { return cmp.Or(op.Holder, u.Writer) }

// operation changes one field in after. Deletions follow later.
func (o *oracle) operation(after map[string]oracleField, u *Update, op *Op, now, id int64) *oracleRefusal {
	f, found := o.fields[op.Field]
	switch {
	case op.Claim && found && f.holder != holderOf(u, op):
		return refuseField(wire.Conflict, op.Field)
	case op.Kind == Delete:
		return nil
	case op.Kind == Touch && !found:
		return refuseField(wire.NotFound, op.Field)
	case op.Kind == Set:
		f.id, f.value, f.holder = id, string(op.Value), holderOf(u, op)
	case op.Kind == Add:
		n := 0
		if found {
			var err error
			if n, err = strconv.Atoi(f.value); err != nil {
				return refuseField(wire.BadRequest, op.Field)
			}
		} else {
			f.holder = holderOf(u, op)
		}
		if n += int(op.By); n < int(op.Min) || n > int(op.Max) {
			return refuseField(wire.OutOfRange, op.Field)
		}
		f.id, f.value = id, strconv.Itoa(n)
	}
	if op.Kind != Add || !found {
		if f.lease = 0; op.TTL > 0 {
			f.lease = cmp.Or(u.From, now) + op.TTL.Milliseconds()
		}
	}
	if op.Parent != "" {
		f.parent = op.Parent
	}
	after[op.Field] = f
	return nil
}
