package state

import (
	"cmp"
	"strconv"
)

func (a *update) check() error {
	if o := a.owners[a.Client]; a.Client != "" && o.fences(a.Generation, a.Server) {
		return Refuse(Fenced, Details{})
	}
	if err := a.checkConditions(); err != nil {
		return err
	}
	if err := a.planAll(); err != nil {
		return err
	}
	for i := range a.plans {
		if err := a.checkParent(&a.plans[i]); err != nil {
			return err
		}
	}
	if err := a.checkOwnedLimit(); err != nil {
		return err
	}
	return a.checkLimits()
}

func (a *update) checkConditions() error {
	var differ map[string]*Field
	first := ""
	for _, cond := range a.If {
		f := a.fields.get(cond.Field)
		ok := f != nil
		switch cond.Kind {
		case IsID:
			ok = f != nil && f.ID == cond.ID
		case IsAbsent:
			ok = f == nil
		case AtMost:
			continue
		}
		if !ok {
			if differ == nil {
				differ, first = make(map[string]*Field), cond.Field
			}
			differ[cond.Field] = a.current(cond.Field)
		}
	}
	if differ == nil {
		return a.checkGroupSizes()
	}
	return Refuse(Unmet, Details{Field: first, Fields: differ})
}

// checkGroupSizes checks the conditions on groups.
func (a *update) checkGroupSizes() error {
	for _, cond := range a.If {
		if cond.Kind != AtMost {
			continue
		}
		if n := a.fields.count(cond.Field); n > cond.Max {
			return Refuse(GroupFull, Details{Other: cond.Field, N: int64(n), Max: int64(cond.Max)})
		}
	}
	return nil
}

// planAll checks each operation against its field.
func (a *update) planAll() error {
	if a.Counter != "" {
		if err := a.takeNumbers(); err != nil {
			return err
		}
	}
	for i := len(a.plans); i < len(a.Ops); i++ {
		if err := a.plan(&a.Ops[i]); err != nil {
			return err
		}
	}
	if len(a.plans) > fewPlans {
		a.byName = make(map[string]*plan, len(a.plans))
		for i := range a.plans {
			a.byName[a.plans[i].op.Field] = &a.plans[i]
		}
	}
	return nil
}

// plan checks one operation against its field.
func (a *update) plan(op *Op) error {
	f := a.fields.get(op.Field)
	if op.Claim && f != nil && f.Holder != a.holder(op) {
		return a.refuse(Claimed, op.Field, Details{})
	}
	p := plan{op: op, old: f}
	switch op.Kind {
	case Set:
		p.value = op.Value
	case Delete:
		p.gone = true
	case Touch:
		if f == nil {
			return a.refuse(Absent, op.Field, Details{})
		}
	case Add:
		if err := a.planAdd(op, &p); err != nil {
			return err
		}
	}
	if f == nil && !p.gone {
		a.added = append(a.added, op.Field)
	}
	a.plans = append(a.plans, p)
	return nil
}

func (a *update) planAdd(op *Op, p *plan) error {
	old := int64(0)
	if p.old != nil {
		n, ok := parseNumber(p.old.Value)
		if !ok {
			return a.refuse(NotNumber, op.Field, Details{})
		}
		old = n
	}
	sum := old + op.By // both are within MaxNumber, so that this cannot overflow
	if sum < max(op.Min, -MaxNumber) || sum > min(op.Max, MaxNumber) {
		return a.refuse(OutOfBounds, op.Field, Details{N: sum})
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

// checkParent checks the parent of a field that the update writes or deletes.
func (a *update) checkParent(p *plan) error {
	op, name := p.op, p.op.Parent
	if p.gone {
		return a.checkPartDeletion(op, p.old)
	}
	if name == "" && p.old != nil {
		name = p.old.Parent
	}
	if name == "" {
		return nil
	}
	parent, planned := a.fields.get(name), a.planOf(name)
	if planned != nil && planned.gone {
		parent, planned = nil, nil
	}
	isPart, holder := false, ""
	if parent != nil {
		isPart, holder = parent.Parent != "", parent.Holder
	}
	if planned != nil {
		isPart = isPart || planned.op.Parent != ""
		if planned.op.Kind == Set || parent == nil {
			holder = a.holder(planned.op)
		}
	}
	switch {
	case op.Parent == op.Field, op.Parent != "" && (isPart || len(a.children[op.Field]) > 0):
		return a.refuse(PartOfPart, op.Field, Details{})
	case parent == nil && planned == nil:
		return a.refuse(NoParent, op.Field, Details{Other: name})
	case op.HeldParent && holder != a.holder(op):
		return a.refuse(ParentHeld, op.Field, Details{Other: name})
	}
	return nil
}

// checkPartDeletion checks the parent of a field that the update deletes. If the update also
// deletes the parent, the holder is that before the update.
func (a *update) checkPartDeletion(op *Op, old *Field) error {
	if old == nil || !op.HeldParent {
		return nil
	}
	name := cmp.Or(old.Parent, op.Parent)
	parent, planned := a.fields.get(name), a.planOf(name)
	holder := ""
	if parent != nil {
		holder = parent.Holder
	}
	writes := planned != nil && !planned.gone
	if writes && (planned.op.Kind == Set || parent == nil) {
		holder = a.holder(planned.op)
	}
	switch {
	case name == "":
		return nil
	case parent == nil && !writes:
		return a.refuse(NoParent, op.Field, Details{Other: name})
	case holder != a.holder(op):
		return a.refuse(ParentHeld, op.Field, Details{Other: name})
	}
	return nil
}

// checkOwnedLimit checks how many fields the client would own.
func (a *update) checkOwnedLimit() error {
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
		return a.refuse(OwnerFull, first, Details{N: int64(owned), Max: int64(a.Owned)})
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
