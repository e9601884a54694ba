package state

import (
	"cmp"
	"math"
	"strings"
)

// checkLimits checks the groups that the update adds to, and the number and size of all fields.
func (a *update) checkLimits() error {
	removed := make(map[string]bool) // fields that are removed because the update deletes their parent
	for i := range a.plans {
		if p := &a.plans[i]; p.gone && p.old != nil {
			for child := range a.children[p.op.Field] {
				if a.planOf(child) == nil {
					removed[child] = true
				}
			}
		}
	}
	checked := make(map[string]bool)
	for _, name := range a.added {
		op := a.planOf(name).op
		group := op.group()
		limit := a.groupMax(op, group)
		if group == "" || checked[group] || limit < 0 {
			continue
		}
		checked[group] = true
		if n := a.count(group, removed); n > limit {
			return a.full(group, limit, n)
		}
	}
	if limit := a.Limits.Fields; limit > 0 && len(a.added) > 0 {
		if n := a.count("", removed); n > limit {
			return a.refuse(ChannelFull, a.added[0], Details{N: int64(n), Max: int64(limit)})
		}
	}
	if limit := a.Limits.Bytes; limit > 0 {
		if before, after := a.bytes, a.sizeAfter(removed); after > limit && after > before {
			return Refuse(ChannelBytes, Details{N: int64(after), Max: int64(limit)})
		}
	}
	return nil
}

// group returns the group to which GroupMax applies, or "".
func (op *Op) group() string { return cmp.Or(op.Group, Group(op.Field)) }

// groupMax returns the most fields of a group, or -1 for no limit: the lower of op.GroupMax and the
// value of the field $max/<group> after the update.
func (a *update) groupMax(op *Op, group string) int {
	limit := -1
	if op.GroupMax > 0 {
		limit = op.GroupMax
	}
	name := maxPrefix + group
	var value []byte
	if p := a.planOf(name); p != nil && (p.gone || p.value != nil) {
		value = p.value
	} else if f := a.fields.get(name); f != nil {
		value = f.Value
	}
	if n, ok := parseNumber(value); ok && n >= 0 && (limit < 0 || n < int64(limit)) {
		limit = int(min(n, math.MaxInt32))
	}
	return limit
}

// count returns how many fields begin with prefix, a group or "", after the update.
func (a *update) count(prefix string, removed map[string]bool) (n int) {
	n = a.fields.count(prefix)
	for name := range removed {
		if strings.HasPrefix(name, prefix) {
			n--
		}
	}
	for i := range a.plans {
		if p := &a.plans[i]; p.gone && p.old != nil && strings.HasPrefix(p.op.Field, prefix) {
			n--
		}
	}
	for _, name := range a.added {
		if strings.HasPrefix(name, prefix) {
			n++
		}
	}
	return n
}

// MaxFullFields is the most fields of a full group that its Refusal shows.
const MaxFullFields = 64

// full returns the refusal for a group that has no room.
func (a *update) full(group string, limit, n int) error {
	names, fields, _ := a.Read(a.now, group, "", MaxFullFields, 0)
	current := make(map[string]*Field, len(names))
	for i, name := range names {
		current[name] = fields[i]
	}
	return Refuse(GroupFull, Details{Other: group, N: int64(n), Max: int64(limit), Fields: current})
}

// sizeAfter returns the bytes of all fields after the update.
func (a *update) sizeAfter(removed map[string]bool) int {
	size := a.bytes
	for name := range removed {
		size -= a.fields.get(name).size(name)
	}
	for i := range a.plans {
		p := &a.plans[i]
		name := p.op.Field
		if p.old != nil && (p.gone || p.value != nil) {
			size -= p.old.size(name)
		}
		if !p.gone && p.value != nil {
			size += len(name) + len(p.value)
		}
	}
	return size
}
