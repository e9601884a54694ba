package queue

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/redispipe"
	"switchboard/internal/state"
)

// StateDifference is a difference between the records of a channel's state.
type StateDifference struct {
	Problem string // what is wrong, with the names of keys and fields
	Remedy  string // what an operator can do; empty if the next write of the fields corrects it
}

// CheckState compares the records of a channel's state with each other. It returns what does not
// agree, in a fixed order. It reads all records at one moment, and changes nothing.
func (r *Redis) CheckState(ctx context.Context, channel string) ([]StateDifference, error) {
	k := r.keys
	reply, err := r.pipe.EvalArray(ctx, checkStateScript, []string{
		k.channelMeta(channel), k.state(channel), k.stateNames(channel),
		k.stateEnds(channel), k.stateParts(channel), k.stateOwners(channel),
	})
	if redis.HasErrorPrefix(err, "WRONGTYPE") {
		return []StateDifference{{Problem: "a record has the wrong type", Remedy: rewrite}}, nil
	}
	if err != nil {
		return nil, fmt.Errorf("check the state of channel %s: %w", channel, err)
	}
	s := storedState{ttl: reply.Int(), keep: reply.Text(), bytes: reply.Text(), due: reply.Text()}
	for _, record := range []*map[string]string{&s.records, &s.names, &s.ends, &s.parts, &s.owners} {
		*record = redispipe.Pairs(reply.Texts())
	}
	if reply.Err != nil {
		return nil, fmt.Errorf("check the state of channel %s: %w", channel, reply.Err)
	}
	return s.check(), nil
}

// metaPage is how many records of positions ChannelsWithStateKeys reads in one round trip.
const metaPage = 500

// ChannelsWithStateKeys yields the channels that have any record of a state, for CheckState: a key
// that begins with st_, or a field of mq_m that does. A channel may come several times. After an
// error the sequence ends.
func (r *Redis) ChannelsWithStateKeys(ctx context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for channel, err := range r.channelsOf(ctx, "st_*{*}") {
			if !yield(channel, err) || err != nil {
				return
			}
		}
		var page []string
		for channel, err := range r.channelsOf(ctx, "mq_m_{*}") {
			if err != nil {
				yield("", err)
				return
			}
			if page = append(page, channel); len(page) == metaPage {
				if !r.yieldStates(ctx, page, yield) {
					return
				}
				page = page[:0]
			}
		}
		r.yieldStates(ctx, page, yield)
	}
}

// yieldStates yields the channels whose mq_m says that they have a state. It returns false if the
// sequence has ended.
func (r *Redis) yieldStates(ctx context.Context, channels []string, yield func(string, error) bool) bool {
	if len(channels) == 0 {
		return true
	}
	cmds := make([]redis.Cmder, len(channels))
	for i, channel := range channels {
		cmds[i] = redis.NewSliceCmd(ctx, "hmget", r.keys.channelMeta(channel), "st_keep", "st_bytes", "st_due")
	}
	_ = r.pipe.DoAll(ctx, cmds) // each command has its error
	for i, cmd := range cmds {
		err := cmd.Err()
		if err != nil && !redis.HasErrorPrefix(err, "WRONGTYPE") { // CheckState reports a wrong type
			yield("", fmt.Errorf("read the position of channel %s: %w", channels[i], err))
			return false
		}
		present := func(value any) bool { return value != nil }
		if err == nil && !slices.ContainsFunc(cmd.(*redis.SliceCmd).Val(), present) {
			continue
		}
		if !yield(channels[i], nil) {
			return false
		}
	}
	return true
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
	wrong            []StateDifference
}

// Remedies.
const (
	// rewrite needs no knowledge of the broken record.
	rewrite = "delete the st_ keys of the channel, HSET its mq_m st_keep 1, and write all fields again"
	// clearLost makes the next update end the state first, by an entry that tells the subscribers.
	clearLost = "HSET mq_m of the channel st_keep 1, and write all fields again: that first ends the old state for all subscribers"
	// writeUnknown works because the first update of a state deletes what is left of another one.
	writeUnknown = "write all fields again: the first write deletes these keys; if they are of no use, delete them"
)

func (s *storedState) report(format string, args ...any) {
	s.reportWith("", format, args...)
}

func (s *storedState) reportWith(remedy, format string, args ...any) {
	s.wrong = append(s.wrong, StateDifference{Problem: fmt.Sprintf(format, args...), Remedy: remedy})
}

// check compares the records with those that the fields need.
func (s *storedState) check() []StateDifference {
	if s.checkLost() {
		return s.wrong
	}
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

// checkLost reports that one side of the state is lost: all fields, or the position that says that
// there is a state. Then a comparison of the records would only repeat that.
func (s *storedState) checkLost() (lost bool) {
	position := s.keep+s.bytes+s.due != ""
	indexes := len(s.names) + len(s.ends) + len(s.parts)
	switch {
	case position && len(s.records)+len(s.owners)+indexes == 0:
		s.reportWith(clearLost, "all st_ keys are lost: mq_m says that there is a state (st_keep %q, st_bytes %q, st_due %q)",
			s.keep, s.bytes, s.due)
	case position && len(s.records)+len(s.owners) == 0:
		s.reportWith(clearLost, "st_ and st_o_ are lost: mq_m says that there is a state (st_keep %q, st_bytes %q, st_due %q)",
			s.keep, s.bytes, s.due)
	case s.keep == "" && len(s.records)+len(s.owners)+indexes > 0:
		found := "is lost"
		if s.ttl != noKey {
			found = "has no st_keep"
		}
		s.reportWith(writeUnknown, "mq_m %s: the st_ keys with %d fields are not read", found, len(s.records))
	default:
		return false
	}
	return true
}

// noKey is the TTL of a key that does not exist.
const noKey = -2

// checkPosition checks what mq_m says about a state. size is the number of bytes of its fields, due
// the end of the next one.
func (s *storedState) checkPosition(size int, due int64) {
	if s.keep == "" { // there is no state
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
