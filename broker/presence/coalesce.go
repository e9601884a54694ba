package presence

import (
	"slices"
	"strings"

	"switchboard/broker/dialect"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// maxTold is the most clients that are named when changes are told together.
const maxNamed = 100

// step is a client that came or went, while changes are told together.
type step struct {
	seq    int64
	member registry.Member
	joined bool
}

// together is what has changed since all was told.
type coalescedChanges struct {
	messages dialect.Maker
	event    wire.Event // without names
	firstSeq int64      // the moment of the first change
	steps    map[string][]step
}

// since is who came and who left, by client, for somebody who knew all up to a moment. He is told nothing of himself.
func (t *coalescedChanges) changesSince(told int64, self string) (joined, left []registry.Member) {
	for client, steps := range t.steps {
		i := slices.IndexFunc(steps, func(s step) bool { return s.seq > told })
		if i < 0 || client == self {
			continue
		}
		first, last := steps[i], steps[len(steps)-1]
		wasIn := !first.joined
		if wasIn && last.joined && first.member.User == last.member.User {
			continue // as another user it has left and joined
		}
		if wasIn {
			left = append(left, first.member)
		}
		if last.joined {
			joined = append(joined, last.member)
		}
	}
	byClient := func(a, b registry.Member) int { return strings.Compare(a.Client, b.Client) }
	slices.SortFunc(joined, byClient)
	slices.SortFunc(left, byClient)
	return joined, left
}

// many says that so much has changed that nobody is named to anybody.
func (t *coalescedChanges) tooMany() bool { return len(t.steps) > 10*maxNamed }

// frame is what somebody is told who knew all up to a moment; empty for nothing.
func (t *coalescedChanges) message(told int64, self string) *dialect.Message {
	event := t.event
	if !t.tooMany() {
		joined, left := t.changesSince(told, self)
		if len(joined)+len(left) == 0 {
			return nil
		}
		if len(joined)+len(left) <= maxNamed {
			event.Joined, event.Left = WireMembers(joined), WireMembers(left)
		}
	}
	return t.messages.Event(event)
}

// special says whether somebody must be told something else than most: he is among those who came or went, or knows some of
// it already, because he has subscribed or was told who is there since the first change.
func (t *coalescedChanges) differsFor(told int64, self string) bool {
	_, changed := t.steps[self]
	return !t.tooMany() && (changed || told >= t.firstSeq)
}
