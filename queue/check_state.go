package queue

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/state"
)

// CheckState compares the records of a channel's state with each other. It returns what does not
// agree, in a fixed order. It reads all records at one moment, and changes nothing.
func (r *Redis) CheckState(ctx context.Context, channel string) ([]string, error) {
	k := r.keys
	reply, err := r.eval(ctx, checkStateScript, []string{
		k.channelMeta(channel), k.state(channel), k.stateNames(channel),
		k.stateEnds(channel), k.stateParts(channel), k.stateOwners(channel),
	})
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		return []string{"a record has the wrong type"}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("check the state of channel %s: %w", channel, err)
	}
	s := storedState{ttl: reply.integer(), keep: reply.text(), bytes: reply.text(), due: reply.text()}
	s.records, s.names, s.ends = pairs(reply), pairs(reply), pairs(reply)
	s.parts, s.owners = pairs(reply), pairs(reply)
	if reply.err != nil {
		return nil, fmt.Errorf("check the state of channel %s: %w", channel, reply.err)
	}
	return s.check(), nil
}

// ChannelsWithStateKeys yields the channels that have any record of a state, for CheckState. A
// channel comes once for each record. After an error the sequence ends.
func (r *Redis) ChannelsWithStateKeys(ctx context.Context) iter.Seq2[string, error] {
	return r.channelsOf(ctx, "st_*{*}")
}

// pairs parses a nested array of keys and values.
func pairs(reply *arrayReply) map[string]string {
	list := reply.texts()
	m := make(map[string]string, len(list)/2)
	for i := 0; i+1 < len(list); i += 2 {
		m[list[i]] = list[i+1]
	}
	return m
}

// storedState is all records of a state, as Redis holds them.
type storedState struct {
	ttl              int64  // of mq_m, in milliseconds; negative for none
	keep, bytes, due string // of mq_m; "" if absent
	records          map[string]string
	names            map[string]string
	ends             map[string]string
	parts            map[string]string
	owners           map[string]string
	wrong            []string
}

func (s *storedState) report(format string, args ...any) {
	s.wrong = append(s.wrong, fmt.Sprintf(format, args...))
}

// check compares the records with those that the fields need.
func (s *storedState) check() []string {
	names, ends, parts, owned := map[string]string{}, map[string]string{}, map[string]string{}, map[string]string{}
	size, due := 0, int64(0)
	fields := s.parse()
	for name, f := range fields {
		names[name] = "0" // a group is counted by the order of the names, which needs equal scores
		size += len(name) + len(f.Value)
		if until := f.Until(); until > 0 {
			ends[name] = decimal(until)
			if due == 0 || until < due {
				due = until
			}
		}
		if f.Parent != "" {
			parts[f.Parent+" "+name] = "0"
		}
		for _, owner := range f.Owners {
			owned[owner+" "+name] = ""
		}
	}
	s.compare("st_n_", s.names, names)
	s.compare("st_x_", s.ends, ends)
	s.compare("st_p_", s.parts, parts)
	s.compare("st_o_", s.owned(), owned)
	s.checkParents(fields)
	s.checkPosition(size, due)
	return s.wrong
}

// parse parses the records of the fields. A malformed record counts as a value.
func (s *storedState) parse() map[string]*state.Field {
	fields := make(map[string]*state.Field, len(s.records))
	for _, name := range slices.Sorted(maps.Keys(s.records)) {
		f, err := state.ParseRecord(s.records[name])
		if err != nil {
			s.report("st_: field %s: %v", name, err)
			f = &state.Field{Value: []byte(s.records[name])}
		}
		fields[name] = f
	}
	return fields
}

// compare reports the differences between a record and what it should hold.
func (s *storedState) compare(record string, got, want map[string]string) {
	for _, member := range slices.Sorted(maps.Keys(want)) {
		switch value, found := got[member]; {
		case !found:
			s.report("%s: %s is missing", record, member)
		case value != want[member]:
			s.report("%s: %s has the score %s, want %s", record, member, value, want[member])
		}
	}
	for _, member := range slices.Sorted(maps.Keys(got)) {
		if _, found := want[member]; !found {
			s.report("%s: %s is there, and does not belong to a field", record, member)
		}
	}
}

// owned returns "<client> <field>" for each field of each client in st_o_.
func (s *storedState) owned() map[string]string {
	owned := map[string]string{}
	for _, client := range slices.Sorted(maps.Keys(s.owners)) {
		words := strings.Split(s.owners[client], " ") // generation, time of the end, server, fields
		if len(words) < 3 {
			s.report("st_o_: client %s: malformed owner", client)
			continue
		}
		for _, name := range words[3:] {
			owned[client+" "+name] = ""
		}
	}
	return owned
}

// checkParents checks that parents exist and are not parts.
func (s *storedState) checkParents(fields map[string]*state.Field) {
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		parent := fields[name].Parent
		if parent == "" {
			continue
		}
		if f := fields[parent]; f == nil {
			s.report("st_: field %s is a part of %s, which does not exist", name, parent)
		} else if f.Parent != "" {
			s.report("st_: field %s is a part of %s, which is a part itself", name, parent)
		}
	}
}

// checkPosition checks what mq_m says about the state.
func (s *storedState) checkPosition(size int, due int64) {
	exists := len(s.records)+len(s.owners) > 0
	switch {
	case exists && s.keep == "":
		s.report("mq_m has no st_keep, although there is a state")
		return
	case !exists && s.keep+s.bytes+s.due != "":
		s.report("mq_m has st_keep %q, st_bytes %q and st_due %q, although there is no state", s.keep, s.bytes, s.due)
		return
	case !exists:
		return
	}
	if want := decimal(int64(size)); s.bytes != want {
		s.report("mq_m: st_bytes is %q, want %s", s.bytes, want)
	}
	if want := decimal(due); s.due != want {
		s.report("mq_m: st_due is %q, want %s", s.due, want)
	}
	if s.ttl >= 0 {
		s.report("mq_m expires, although there is a state")
	}
}
