package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"switchboard/internal/redispipe"
	"switchboard/internal/state"
)

// stateKeys returns the keys of the scripts that change the state of a channel.
func (r *Redis) stateKeys(channel string) []string {
	k := r.keys
	return append(make([]string, 0, 9), k.channel(channel), k.channelMeta(channel), k.channelServers(channel),
		k.state(channel), k.stateNames(channel), k.stateEnds(channel), k.stateOwners(channel), k.stateParts(channel))
}

// appendUpdate packs an update for update_state.lua, in the order of scriptMembers. arg is that of
// a ScriptCall, or "".
func appendUpdate(p *packer, u *state.Update, arg string) {
	t := p.tuple()
	taken := int64(0)
	if u.Counter == "" {
		p.array(len(u.Ops))
	} else {
		op := u.CounterOp()
		taken = op.By
		p.array(1 + len(u.Ops))
		appendOp(p, &op)
	}
	for i := range u.Ops {
		appendOp(p, &u.Ops[i])
	}
	t.added()
	addText(&t, u.Writer)
	keep := int64(0)
	if u.Keep > 0 {
		keep = millis(u.Keep)
	}
	t.integer(keep)
	t.integer(int64(u.Fields))
	t.integer(int64(u.Bytes))
	addText(&t, u.Data)
	if len(u.If) > 0 {
		p.array(len(u.If))
		for _, c := range u.If {
			appendCondition(p, c)
		}
		t.added()
	} else {
		t.skip()
	}
	addText(&t, u.Client)
	t.integer(u.Generation)
	addText(&t, u.Server)
	t.integer(int64(u.Owned))
	addText(&t, jsonText(u.Client))
	t.integer(taken)
	addText(&t, arg)
	addText(&t, u.ByField)
	t.integer(u.From)
	addText(&t, jsonText(u.Exclude))
	t.finish()
}

func appendCondition(p *packer, c state.Condition) {
	t := p.tuple()
	addText(&t, c.Field)
	t.integer(int64(c.Kind))
	if c.Kind == state.IsID {
		addText(&t, decimal(c.ID)) // the script compares the text of ids
	} else if c.Kind == state.AtMost {
		t.integer(int64(c.Max))
	}
	t.finish()
}

// jsonText returns text as JSON, for a script.
func jsonText(text string) string {
	if text == "" {
		return ""
	}
	encoded, _ := json.Marshal(text) // a string cannot fail
	return string(encoded)
}

func appendOp(p *packer, op *state.Op) {
	lease, grace := int64(0), op.Grace.Milliseconds()
	if op.TTL > 0 {
		lease = millis(op.TTL)
	}
	if op.Grace < 0 {
		grace = state.AwayStays
	}
	t := p.tuple()
	addText(&t, op.Field)
	t.integer(int64(op.Kind))
	addText(&t, op.Value)
	t.integer(lease)
	t.flag(op.Claim)
	t.integer(int64(op.GroupMax))
	t.integer(int64(op.Own))
	t.integer(grace)
	addText(&t, op.Parent)
	t.flag(op.HeldParent)
	if op.Kind == state.Add {
		t.integer(op.By)
		t.integer(max(op.Min, -state.MaxNumber))
		t.integer(min(op.Max, state.MaxNumber))
	} else if op.Holder != "" || op.Numbered || op.Group != "" {
		t.skip()
		t.skip()
		t.skip()
	}
	addText(&t, op.Holder)
	if op.Numbered {
		addText(&t, "#"+op.Group) // no name begins with #
	} else {
		addText(&t, op.Group)
	}
	t.finish()
}

// stateReply is the reply of update_state.lua, or of step_state.lua, for one channel.
type stateReply struct {
	header  textReply
	entry   string
	records []any // names and records of fields
}

func parseState(value any) (r stateReply, err error) {
	list, _ := value.([]any)
	if len(list) < 2 {
		return r, fmt.Errorf("unexpected reply of a script: %T of %d elements", value, len(list))
	}
	r.header.rest, _ = list[0].(string)
	r.entry, _ = list[1].(string)
	r.records = list[2:]
	return r, nil
}

// parseUpdate parses the reply of update_state.lua. The error is a *state.Refusal if the update was
// refused.
func (r *Redis) parseUpdate(value any) (a Appended, err error) {
	reply, err := parseState(value)
	if err != nil {
		return a, err
	}
	h := &reply.header
	key := h.text()
	a.Prev, a.Duplicate = h.integer(), h.integer() == 1
	a.Clock = h.integer()
	r.clock.update(a.Clock)
	a.Due = h.integer()
	results, reason := h.text(), h.text()
	d := state.Details{Field: h.text(), Other: h.text(), N: h.integer(), Max: h.integer()}
	a.Servers = h.texts()
	if h.err != nil {
		return Appended{}, h.err
	}
	if a.Duplicate {
		return a, a.parseKey(key)
	}
	if results != "" {
		key += " " + results
	}
	if err = a.parseKey(key); err != nil {
		return Appended{}, err
	}
	if reply.entry != "" {
		a.Data = []byte(reply.entry)
	}
	switch reason {
	case "":
		return a, nil
	case "new":
		return Appended{}, ErrNewChannel
	}
	if d.Fields, err = parseShown(reply.records); err != nil {
		return Appended{}, err
	}
	if state.Reason(reason) == state.OutOfBounds { // the script returns both numbers, since the sum may be inexact there
		d.N, d.Max = d.N+d.Max, 0
	}
	return a, state.Refuse(state.Reason(reason), d)
}

// parseShown parses the fields that a refusal shows: nil if there are none.
func parseShown(records []any) (map[string]*state.Field, error) {
	if len(records) == 0 {
		return nil, nil
	}
	fields := make(map[string]*state.Field, len(records)/2)
	for i := 0; i+1 < len(records); i += 2 {
		name, _ := records[i].(string)
		record, _ := records[i+1].(string)
		if record == "" {
			fields[name] = nil
			continue
		}
		f, err := state.ParseRecord(record)
		if err != nil {
			return nil, fmt.Errorf("field %s: %w", name, err)
		}
		if len(f.Value) == 0 { // the script has dropped it
			f.Value = nil
		}
		fields[name] = f
	}
	return fields, nil
}

// parseKey parses the value of a channel's idempotency key into the ID, the Numbers and the Reply:
//
//	<id>[ [<results of state.Add as JSON>][<tab><reply>]]
func (a *Appended) parseKey(value string) error {
	value, a.Reply, _ = strings.Cut(value, "\t")
	id, results, _ := strings.Cut(value, " ")
	reply := textReply{rest: id}
	if a.ID = reply.integer(); reply.err == nil && results != "" {
		reply.err = json.Unmarshal([]byte(results), &a.Numbers)
	}
	return reply.err
}

// StepStates makes each change, in no particular order. The Appended of a change that appends
// nothing has the ID 0. A step that fails does not affect the others.
func (r *Redis) StepStates(ctx context.Context, steps []StateStep) []Outcome[Appended] {
	targets := make([]redispipe.Target, len(steps))
	for i, step := range steps {
		p := make(packer, 0, 128)
		p.array(4)
		p.integer(int64(step.Kind))
		packText(&p, step.Conn.Client)
		p.integer(step.Conn.Generation)
		packText(&p, step.Conn.Server)
		targets[i] = redispipe.Target{Script: r.stepState, Keys: r.stateKeys(step.Channel), Args: []any{[]byte(p)}}
	}
	out := make([]Outcome[Appended], len(steps))
	for i, answer := range r.pipe.EvalEach(ctx, targets...) {
		o := &out[i]
		if o.Err = answer.Err; o.Err == nil {
			o.Value, o.Err = r.parseStep(answer.Value)
		}
		if o.Err != nil {
			o.Err = fmt.Errorf("state of channel %s: %w", steps[i].Channel, o.Err)
		}
	}
	return out
}

func (r *Redis) parseStep(value any) (a Appended, err error) {
	reply, err := parseState(value)
	if err != nil {
		return a, err
	}
	h := &reply.header
	a.ID, a.Prev = h.integer(), h.integer()
	stale := h.integer() == 1
	r.clock.update(h.integer())
	a.Due, a.KeepUntil, a.Servers = h.integer(), h.integer(), h.texts()
	if reply.entry != "" {
		a.Data = []byte(reply.entry)
	}
	if h.err == nil && stale {
		return a, ErrStale
	}
	return a, h.err
}
