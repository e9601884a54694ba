package state

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"switchboard/internal/wire"
)

func (o *oracle) parents(after map[string]oracleField, u *Update) *oracleRefusal {
	for _, op := range u.Ops {
		if op.Kind == Delete {
			if r := o.deletedPart(after, u, op); r != nil {
				return r
			}
			continue
		}
		f := after[op.Field]
		if f.parent == "" {
			continue
		}
		parent, found := after[f.parent]
		isPart := parent.parent != ""
		for _, other := range o.fields {
			isPart = isPart || other.parent == op.Field
		}
		switch {
		case op.Parent != "" && (isPart || op.Parent == op.Field):
			return refuseField(wire.BadRequest, op.Field)
		case !found:
			return refuseField(wire.NotFound, op.Field)
		case op.HeldParent && parent.holder != holderOf(u, &op):
			return refuseField(wire.Forbidden, op.Field)
		}
	}
	return nil
}

// deletedPart checks who holds the parent of a field that is deleted.
func (o *oracle) deletedPart(after map[string]oracleField, u *Update, op Op) *oracleRefusal {
	f, found := o.fields[op.Field]
	if f.parent == "" {
		f.parent = op.Parent
	}
	if !found || !op.HeldParent || f.parent == "" {
		return nil
	}
	parent, found := after[f.parent]
	if !found { // deleted, too
		parent, found = o.fields[f.parent]
	}
	switch {
	case !found:
		return refuseField(wire.NotFound, op.Field)
	case parent.holder != holderOf(u, &op):
		return refuseField(wire.Forbidden, op.Field)
	}
	return nil
}

func (o *oracle) owned(u *Update) *oracleRefusal {
	if u.Client == "" || u.Owned == 0 {
		return nil
	}
	mine := map[string]bool{}
	for name, f := range o.fields {
		if f.ownedBy(u.Client) {
			mine[name] = true
		}
	}
	first := ""
	for _, op := range u.Ops {
		if op.Kind == Delete || op.Own == Disown {
			delete(mine, op.Field)
		} else if op.Own == Own {
			if !mine[op.Field] && first == "" {
				first = op.Field
			}
			mine[op.Field] = true
		}
	}
	if first == "" || len(mine) <= u.Owned {
		return nil
	}
	r := refuseField(wire.Full, first)
	r.limit = u.Owned
	return r
}

func (o *oracle) limits(after map[string]oracleField, u *Update) *oracleRefusal {
	first := ""
	for _, op := range u.Ops {
		if _, before := o.fields[op.Field]; before || op.Kind == Delete {
			continue
		}
		if first == "" {
			first = op.Field
		}
		limit := op.GroupMax
		group := cmp.Or(op.Group, Group(op.Field))
		if n, err := strconv.Atoi(after["$max/"+group].value); err == nil && n >= 0 && (limit == 0 || n < limit) {
			if limit = n; n == 0 {
				limit = -1
			}
		}
		if group != "" && limit != 0 && countFields(after, group) > max(limit, 0) {
			r := &oracleRefusal{code: wire.Full, group: group, limit: max(limit, 0)}
			for name := range o.fields {
				if strings.HasPrefix(name, group) {
					r.fields = append(r.fields, name)
				}
			}
			slices.Sort(r.fields)
			return r
		}
	}
	if first != "" && u.Fields > 0 && len(after) > u.Fields {
		r := refuseField(wire.Full, first)
		r.limit = u.Fields
		return r
	}
	if size := sumBytes(after); u.Bytes > 0 && size > u.Bytes && size > sumBytes(o.fields) {
		return &oracleRefusal{code: wire.TooLarge}
	}
	return nil
}

func countFields(fields map[string]oracleField, group string) (n int) {
	for name := range fields {
		if strings.HasPrefix(name, group) {
			n++
		}
	}
	return n
}

func sumBytes(fields map[string]oracleField) (n int) {
	for name, f := range fields {
		n += len(name) + len(f.value)
	}
	return n
}
