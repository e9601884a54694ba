package queue

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/meter"
	"switchboard/internal/redispipe"
	"switchboard/internal/state"
)

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
	p.array(6)
	packText(&p, from)
	packText(&p, to)
	p.integer(int64(read.Limit))
	p.integer(int64(read.Bytes))
	p.flag(read.Brief)
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
		p.flag(g.Parents)
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
