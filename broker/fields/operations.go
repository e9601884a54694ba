package fields

import (
	"maps"
	"slices"

	"switchboard/broker/namespace"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// addOperations adds the operations of the change to the update.
func (b *builder) addOperations() error {
	b.update.Ops = make([]state.Op, 0, b.operations())
	seen := make(map[string]struct{}, b.operations())
	for i := range b.Set {
		if err := b.addOperation(seen, state.Set, b.Set[i].Name, b.Set[i].JSON); err != nil {
			return err
		}
	}
	for _, name := range b.Del {
		if err := b.addOperation(seen, state.Delete, name, nil); err != nil {
			return err
		}
	}
	for i := range b.Add {
		if err := b.addOperation(seen, state.Add, b.Add[i].Name, b.Add[i].JSON); err != nil {
			return err
		}
	}
	for _, name := range b.Touch {
		if err := b.addOperation(seen, state.Touch, name, nil); err != nil {
			return err
		}
	}
	return nil
}

func (b *builder) addOperation(seen map[string]struct{}, kind state.Kind, name string, text []byte) error {
	m, err := b.checkField(name)
	if err != nil {
		return err
	}
	if _, found := seen[name]; found {
		return wire.Errorf(wire.BadRequest, "field %s: it appears twice", name)
	}
	seen[name] = struct{}{}
	op := state.Op{Field: name, Kind: kind}
	if err := b.setRules(&op, m); err != nil {
		return err
	}
	switch kind {
	case state.Set:
		op.Value, err = b.value(name, m.Rule, text)
	case state.Add:
		err = parseAdd(&op, text)
	}
	b.update.Ops = append(b.update.Ops, op)
	return err
}

// checkField checks the name of a field, and whether the writer may write it.
func (b *builder) checkField(name string) (namespace.FieldMatch, error) {
	if err := state.CheckName(name); err != nil {
		return namespace.FieldMatch{}, err
	}
	m, allowed := b.set.AllowsField(b.w.Subject, b.channel, name)
	if !allowed {
		_, why := b.set.DecideField(b.w.Subject, b.channel, name)
		return m, wire.Errorf(wire.Forbidden, "field %s: not allowed to write: %s", name, why)
	}
	return m, nil
}

// setRules applies the rules of the namespace to an operation.
func (b *builder) setRules(op *state.Op, m namespace.FieldMatch) error {
	op.Parent = m.Parent
	if !b.w.Backend {
		op.Claim = m.Rule.Write == namespace.Claim
		op.HeldParent = m.Parent != ""
	}
	if op.Kind == state.Delete {
		return nil
	}
	if op.Group = m.Group; op.Group != "" {
		op.GroupMax = m.Rule.Max
	} else {
		op.GroupMax = b.rule.GroupMax(state.Group(op.Field))
	}
	if err := b.setLease(op, m.Rule); err != nil {
		return err
	}
	return b.setOwner(op, m.Rule)
}

// setLease sets the lease of an operation. A client gets that of the rule, or a shorter one.
func (b *builder) setLease(op *state.Op, rule *namespace.FieldRule) error {
	op.TTL = b.ttl.duration
	if b.w.Backend || rule.TTL == 0 {
		return nil
	}
	switch {
	case !b.ttl.given:
		op.TTL = rule.TTL
	case op.TTL == 0 || op.TTL > rule.TTL:
		return wire.Errorf(wire.BadRequest, "field %s: the ttl must be above 0 and at most %v", op.Field, rule.TTL)
	}
	return nil
}

// setOwner sets whether the client becomes or stops being an owner.
func (b *builder) setOwner(op *state.Op, rule *namespace.FieldRule) error {
	always := !b.w.Backend && rule.Own
	switch {
	case b.Own == nil && !always:
		return nil
	case b.Own == nil, *b.Own:
		op.Own, op.Grace = state.Own, b.rule.GraceOf(rule)
	case always:
		return wire.Errorf(wire.Forbidden, "field %s: its rule says own: always, so own cannot be false", op.Field)
	default:
		op.Own = state.Disown
		return nil
	}
	switch {
	case b.w.Client == "":
		return wire.Errorf(wire.BadRequest, "field %s: own needs the connection of a client", op.Field)
	case !b.w.HasState:
		return wire.Errorf(wire.BadRequest, "field %s: a client that owns it must be subscribed to the channel with state", op.Field)
	}
	return nil
}

// addParents adds the parents that the backend names.
func (b *builder) addParents() error {
	if len(b.Of) == 0 {
		return nil
	}
	if !b.w.Backend {
		return wire.Errorf(wire.Forbidden, "of: only the backend may name the parent of a field")
	}
	for _, name := range slices.Sorted(maps.Keys(b.Of)) {
		parent := b.Of[name]
		i := slices.IndexFunc(b.update.Ops, func(op state.Op) bool {
			return op.Field == name && (op.Kind == state.Set || op.Kind == state.Add)
		})
		if i < 0 {
			return wire.Errorf(wire.BadRequest, "of: field %.128s is not set by this change", name)
		}
		if err := state.CheckName(parent); err != nil {
			return err
		}
		if parent == name {
			return wire.Errorf(wire.BadRequest, "field %s: it cannot be a part of itself", name)
		}
		b.update.Ops[i].Parent = parent
	}
	return nil
}
