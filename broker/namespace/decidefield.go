package namespace

import (
	"fmt"

	"switchboard/internal/state"
)

// fieldReason is why a subject may write a field, or may not.
type fieldReason uint8

const (
	badField     fieldReason = iota // not a valid name of a field
	badChannel                      // the channel has no rule
	backendField                    // the name begins with $
	noPattern                       // no pattern fits the name
	otherUser                       // the field belongs to another user
	fieldClosed                     // the pattern does not allow this subject
	fieldOpen                       // the pattern allows this subject
	fieldBackend                    // the subject is the backend
)

// AllowsField reports whether the subject may write the field, and how the field fits the rules. It
// does not know the field's current holder, so a claim by another user may still refuse the write.
func (s *Set) AllowsField(subject Subject, channel, field string) (FieldMatch, bool) {
	why, _, m, _ := s.decideField(subject, channel, field)
	return m, why >= fieldOpen
}

// DecideField is AllowsField, and explains the decision in a text for people, like Decide.
func (s *Set) DecideField(subject Subject, channel, field string) (allowed bool, why string) {
	reason, r, m, by := s.decideField(subject, channel, field)
	switch reason {
	case badField:
		return false, messageOf(state.CheckName(field)).Error()
	case badChannel:
		channelReason, _ := s.resolve(channel)
		return false, channelReason.text(r, channel)
	}
	label := r.label
	if m.Rule != nil && r != s.defaultRule {
		label += ", fields " + m.Rule.Pattern
	}
	switch reason {
	case backendField:
		why = label + ": a field that begins with $ belongs to the backend"
	case noPattern:
		why = label + ": no pattern fits the field, so it belongs to the backend"
	case otherUser:
		why = label + ": the name has another user"
	case fieldClosed:
		why = fmt.Sprintf("%s: write is open to %s", label, deniedDetail(subject, r, m.Rule.Write, channel))
	case fieldOpen:
		why = fmt.Sprintf("%s: write is open to %s", label, by)
	case fieldBackend:
		why = label + ": the backend may"
	}
	return reason >= fieldOpen, why
}

func (s *Set) decideField(subject Subject, channel, field string) (fieldReason, *Rule, FieldMatch, Access) {
	if state.CheckName(field) != nil {
		return badField, nil, FieldMatch{}, 0
	}
	why, r := s.resolve(channel)
	if !why.allowed() {
		return badChannel, r, FieldMatch{}, 0
	}
	m := r.MatchField(subject, field)
	switch {
	case subject.Backend:
		return fieldBackend, r, m, 0
	case state.IsBackend(field):
		return backendField, r, m, 0
	case m.Rule == nil:
		return noPattern, r, m, 0
	case m.OtherUser:
		return otherUser, r, m, 0
	}
	if by := s.matchAccess(subject, r, m.Rule.Write, Write, channel); by != 0 {
		return fieldOpen, r, m, by
	}
	return fieldClosed, r, m, 0
}
