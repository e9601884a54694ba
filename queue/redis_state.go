package queue

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"switchboard/internal/meter"
	"switchboard/internal/redispipe"
	"switchboard/internal/state"

	"github.com/redis/go-redis/v9"
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

// ReadStates reads pages of states, or some fields of them, in as few round trips as possible, in
// no particular order. Fields that are due are not in a page.
func (r *Redis) ReadStates(ctx context.Context, reads []StateRead) []Outcome[StatePage] {
	targets := make([]redispipe.Target, len(reads))
	for i, read := range reads {
		if targets[i] = r.stateTarget(read); read.Count != nil {
			targets[i] = r.countTarget(read)
		}
	}
	out := make([]Outcome[StatePage], len(reads))
	for i, answer := range r.pipe.EvalEach(ctx, targets...) {
		for answer.Err == nil && answer.Value == "" { // not read: the pages of other channels were too large
			answer = r.pipe.EvalEach(ctx, targets[i])[0]
		}
		o := &out[i]
		if o.Err = answer.Err; o.Err == nil {
			o.Value, o.Err = r.parseStatePage(answer.Value, len(reads[i].Count))
			meter.Add(ctx, o.Value.Expired*recordBytes) // the script has looked at them
		}
		if o.Err != nil {
			*o = Outcome[StatePage]{Err: fmt.Errorf("read the state of channel %s: %w", reads[i].Channel, o.Err)}
		}
	}
	return out
}

func (r *Redis) stateTarget(read StateRead) redispipe.Target {
	from, to := "-", "+"
	if prefix := read.Prefix; prefix != "" {
		last := len(prefix) - 1
		from, to = "["+prefix, "("+prefix[:last]+string(rune(prefix[last]+1)) // names are ASCII
	}
	if read.Cursor != "" && read.Cursor >= read.Prefix {
		from = "(" + read.Cursor
	}
	p := make(packer, 0, 64)
	p.array(5)
	packText(&p, from)
	packText(&p, to)
	p.integer(int64(read.Limit))
	p.integer(int64(read.Bytes))
	p.array(len(read.Fields))
	for _, name := range read.Fields {
		packText(&p, name)
	}
	k := r.keys
	keys := []string{k.channel(read.Channel), k.channelMeta(read.Channel), k.state(read.Channel), k.stateNames(read.Channel)}
	return redispipe.Target{Script: r.readState, Keys: keys, Args: []any{[]byte(p)}}
}

// countTarget is stateTarget for a read with Count.
func (r *Redis) countTarget(read StateRead) redispipe.Target {
	p := make(packer, 0, 64)
	p.array(2)
	p.array(len(read.Fields))
	for _, name := range read.Fields {
		packText(&p, name)
	}
	p.array(len(read.Count))
	for _, g := range read.Count {
		p.array(2)
		packText(&p, g.Prefix)
		if g.Parents {
			p.integer(1)
		} else {
			p.integer(0)
		}
	}
	k, c := r.keys, read.Channel
	keys := []string{k.channel(c), k.channelMeta(c), k.state(c), k.stateNames(c), k.stateEnds(c), k.stateParts(c)}
	return redispipe.Target{Script: r.countState, Keys: keys, Args: []any{[]byte(p)}}
}

// parseStatePage parses a reply of read_state, or of count_state if it has counts.
func (r *Redis) parseStatePage(value any, counts int) (page StatePage, err error) {
	list, _ := value.([]any)
	if len(list)%2 == 0 {
		return page, errors.New("unexpected reply of a script: a page has a header, and names with records")
	}
	text, _ := list[0].(string)
	header := textReply{rest: text}
	page.ID, page.Clock, page.Due = header.integer(), header.integer(), header.integer()
	page.KeepUntil = header.integer()
	more := false
	if counts == 0 {
		more = header.integer() == 1
	} else {
		page.Ends, page.Expired = header.integer(), int(header.integer())
		for range counts {
			page.Counts = append(page.Counts, int(header.integer()))
		}
	}
	if header.err != nil {
		return page, header.err
	}
	r.clock.update(page.Clock)
	if n := len(list) / 2; n > 0 {
		page.Fields = make([]NamedField, n)
	}
	for i := range page.Fields {
		name, _ := list[1+2*i].(string)
		record, _ := list[2+2*i].(string)
		f, err := state.ParseRecord(record)
		if err != nil {
			return StatePage{}, fmt.Errorf("field %s: %w", name, err)
		}
		page.Fields[i] = NamedField{name, f}
	}
	if n := len(page.Fields); more && n > 0 {
		page.Next = page.Fields[n-1].Name
	}
	return page, nil
}

// StateChannels yields the channels that have a state, for the janitor: it steps each with Sweep. A
// channel may come more than once. After an error the sequence ends.
func (r *Redis) StateChannels(ctx context.Context) iter.Seq2[string, error] {
	return r.channelsOf(ctx, "st_[no]_{*}") // a state has names, or owners that have ended
}

// channelsOf yields the channels of the keys that match a pattern.
func (r *Redis) channelsOf(ctx context.Context, pattern string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for key, err := range r.pipe.Keys(ctx, redispipe.EscapeGlob(r.keys.prefix)+pattern) {
			if err != nil {
				yield("", fmt.Errorf("list the channels with a state: %w", err))
				return
			}
			_, name, _ := strings.Cut(key[len(r.keys.prefix):], "{")
			if !yield(strings.TrimSuffix(name, "}"), nil) {
				return
			}
		}
	}
}

// StateServers returns the servers that hold the connections of owners of fields, in order, for the
// janitor.
func (r *Redis) StateServers(ctx context.Context, channel string) ([]string, error) {
	cmd := redis.NewStringSliceCmd(ctx, "hvals", r.keys.stateOwners(channel))
	if err := r.pipe.Do(ctx, cmd); err != nil {
		return nil, fmt.Errorf("servers of the owners in channel %s: %w", channel, err)
	}
	var servers []string
	for _, record := range cmd.Val() {
		// <generation> <end, or 0> <server> <field>...
		if words := strings.SplitN(record, " ", 4); len(words) >= 3 && words[1] == "0" {
			servers = append(servers, words[2])
		}
	}
	slices.Sort(servers)
	return slices.Compact(servers), nil
}
