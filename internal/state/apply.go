package state

import "cmp"

// update is an Update that is being checked and applied.
type update struct {
	change
	*Update
	plans  []plan           // one for each of Ops, in the same order
	byName map[string]*plan // by field; nil for a few plans
	added  []string         // fields that the update creates, in order
}

// fewPlans is the number of plans up to which a search takes less time than a map.
const fewPlans = 4

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
	var few [fewPlans]plan // on the stack
	a := update{change: change{State: s, now: now, next: next, entry: new(Entry)}, Update: u, plans: few[:0]}
	a.prepare()
	if err := a.check(); err != nil {
		return a.finish(), err
	}
	a.entry.By, a.entry.Exclude, a.entry.Data = u.Client, u.Exclude, u.Data
	a.result.ID, a.whole = next(), true
	a.write()
	if u.ByField != "" {
		a.entry.By, a.entry.From = "", u.Client
		if f := a.fields.get(u.ByField); f != nil {
			a.entry.By = aliasOf(f.Value)
		}
	}
	if s.keepUntil = 0; u.Keep > 0 {
		s.keepUntil = now + u.Keep.Milliseconds()
	}
	a.result.Entries = append(a.result.Entries, Logged{a.result.ID, a.entry})
	return a.result, nil
}

// Check is Apply for an update that changes nothing: it removes what is due, and checks u.
func (s *State) Check(u *Update, now int64, next func() int64) (Result, error) {
	a := update{change: change{State: s, now: now, next: next, entry: new(Entry)}, Update: u}
	a.prepare()
	err := a.check()
	return a.finish(), err
}

// planOf returns the plan for a field, or nil.
func (a *update) planOf(name string) *plan {
	if a.byName != nil {
		return a.byName[name]
	}
	for i := range a.plans {
		if a.plans[i].op.Field == name {
			return &a.plans[i]
		}
	}
	return nil
}

// write writes the fields. The order of the steps decides what happens to a field that several
// operations concern: a part that moves to another parent does not end with the old one.
func (a *update) write() {
	for i := range a.plans {
		if p := &a.plans[i]; !p.gone {
			a.writeField(p)
		}
	}
	for i := range a.plans {
		if p := &a.plans[i]; p.gone {
			a.deleteField(p)
		}
	}
	for i := range a.Ops {
		if op := &a.Ops[i]; op.Kind != Delete && op.Own == Disown {
			a.disown(op.Field, a.Client)
		}
	}
	owns := false
	for i := range a.Ops {
		if op := &a.Ops[i]; op.Kind != Delete && op.Own == Own && a.addOwner(op, a.Client) {
			owns = true
		}
	}
	if owns {
		a.connect(a.owners[a.Client], a.Generation, a.Server)
	}
}

// refuse returns a Refusal about one field, which shows its current value.
func (a *update) refuse(why Reason, field string, d Details) *Refusal {
	d.Field, d.Fields = field, map[string]*Field{field: a.current(field)}
	return Refuse(why, d)
}

// current returns a copy of the live field, or nil.
func (a *update) current(name string) *Field {
	if f := a.fields.get(name); f != nil {
		return f.clone()
	}
	return nil
}

// writeField writes the value, the lease and the parent of a field.
func (a *update) writeField(p *plan) {
	op := p.op
	f := a.fields.get(op.Field)
	created := f == nil
	if created {
		f = &Field{}
		a.fields.set(op.Field, f)
		a.bytes += len(op.Field)
	}
	a.setValue(p, f)
	if op.Kind != Add || created {
		a.setLease(op, f)
	} else if f.Until() > 0 {
		a.entry.setUntil(op.Field, f.Until())
	}
	if op.Parent != "" {
		a.setParent(op.Field, f, op.Parent)
	}
}

// deleteField removes a field and its children.
func (a *update) deleteField(p *plan) {
	a.entry.Del = append(a.entry.Del, a.remove(p.op.Field)...)
	if p.old == nil {
		a.entry.Del = append(a.entry.Del, p.op.Field)
	}
}

// setValue writes the value of Set and Add.
func (a *update) setValue(p *plan, f *Field) {
	if p.value == nil {
		return
	}
	op := p.op
	a.bytes += len(p.value) - len(f.Value)
	f.ID, f.Value = a.result.ID, p.value
	if op.Kind == Set || f.Holder == "" {
		f.Holder = a.holder(op)
	}
	put(&a.entry.Set, op.Field, p.value)
	if op.Kind == Add {
		put(&a.result.Numbers, op.Field, p.number)
	}
}

// setLease sets the lease and reports the new end.
func (a *update) setLease(op *Op, f *Field) {
	before := f.Until()
	f.Lease = 0
	if op.TTL > 0 {
		f.Lease = cmp.Or(a.From, a.now) + max(op.TTL.Milliseconds(), 1)
	}
	until := f.Until()
	a.endChanged(before, until)
	if until > 0 || op.Kind == Touch {
		a.entry.setUntil(op.Field, until)
	}
}
