package namespace

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/internal/state"
)

// The times of a state, unless the namespace says otherwise.
const (
	DefaultStateKeep = 24 * time.Hour
	DefaultGrace     = 15 * time.Second
)

// KeepForever is the Rule.StateKeep of a state that never ends.
const KeepForever time.Duration = -1

// GraceNever is the Grace of fields that stay, marked as away, after their owners have left.
const GraceNever = state.GraceNever

// MaxLease is the longest lease of a field.
const MaxLease = 10 * 365 * 24 * time.Hour

// FieldRule says which clients may write the fields that fit a pattern, and how.
type FieldRule struct {
	// Pattern is literal text with placeholders: {user} is the escaped name of the writer's user (see
	// state.Escape), {n} any part without a slash, and * at the end any rest. Only a slash may follow
	// a placeholder.
	//
	// Of the patterns that fit a name, the one with the longest text before its first placeholder
	// decides; of those, an exact one, then {user}, {n} and *. A {user} that is another user leaves
	// the decision only to patterns with the same text before the placeholder.
	Pattern string
	// Write are the clients that may write the fields. The backend always may. Zero means no clients.
	Write Access
	// Own makes each client that sets a field, adds to it or touches it an owner of the field.
	Own bool
	// TTL is the lease of a field that a client writes without a ttl, and the longest one. Zero means
	// that a field has no lease, unless the client asks for one.
	TTL time.Duration
	// Max is the most fields of the group, whatever patterns its fields fit. It stands on one pattern
	// that is the group, such as seat/*. On a pattern such as p/{n}/* or p/{user}/* it is the most
	// fields with the same part. Zero means no limit.
	Max int
	// Bytes is the most bytes of a value. Zero means the broker's limit.
	Bytes int
	// Of makes the fields parts of another one, such as member/{n}: only the holder of that field may
	// write them, and they end with it. It may use the placeholders of Pattern except *. Zero means no
	// parent.
	Of string
	// Grace is how long an owned field stays after its last owner has left. GraceNever means that it
	// stays. Zero means the Grace of the namespace.
	Grace time.Duration

	pattern, parent fieldPattern
}

// prepare parses and checks the rule. Errors do not name the pattern.
func (f *FieldRule) prepare() (err error) {
	if f.pattern, err = parseFieldPattern(f.Pattern); err != nil {
		return err
	}
	switch {
	case f.Write&Claim != 0 && f.Write != Claim:
		return errors.New("write: claim cannot be combined with other words")
	case f.TTL < 0 || f.TTL > MaxLease:
		return fmt.Errorf("ttl: %v is not within 0 and %v", f.TTL, MaxLease)
	case f.Grace < 0 && f.Grace != GraceNever || f.Grace > MaxLease:
		return fmt.Errorf("grace: %v is not within 0 and %v", f.Grace, MaxLease)
	case f.Max < 0 || f.Bytes < 0:
		return errors.New("max and bytes must not be below zero")
	case f.Max > 0 && f.pattern.group() == "" && f.pattern.subgroup().tokens == nil:
		return f.notAGroup()
	}
	return f.prepareParent()
}

// notAGroup returns the error for a max on a pattern that is not a group.
func (f *FieldRule) notAGroup() error {
	if group := state.Group(f.pattern.literal()); group != "" {
		return fmt.Errorf("max: it limits the group %s, so it belongs on %s*, %s%s or %s%s",
			group, group, group, userPlaceholder, group, partPlaceholder)
	}
	return errors.New("max: it limits a group, the fields with the same text up to the first slash, but this pattern is no group")
}

func (f *FieldRule) prepareParent() (err error) {
	if f.Of == "" {
		return nil
	}
	if f.parent, err = parseFieldPattern(f.Of); err != nil {
		return fmt.Errorf("of: %w", err)
	}
	switch {
	case strings.Contains(f.Of, "*"):
		return errors.New("of: it names one field, so * is not allowed")
	case f.parent.hasPart && !f.pattern.hasPart:
		return fmt.Errorf("of: the pattern does not have %s", partPlaceholder)
	case f.parent.hasUser && !f.pattern.hasUser:
		return fmt.Errorf("of: the pattern does not have %s", userPlaceholder)
	case f.Of == f.Pattern:
		return errors.New("of: a field cannot be a part of itself")
	}
	return nil
}

// prepareFields parses and checks the rules of fields, and sorts them by precedence.
func (r *Rule) prepareFields() error {
	r.fields = slices.Clone(r.Fields)
	for i := range r.fields {
		f := &r.fields[i]
		if err := f.prepare(); err != nil {
			return fmt.Errorf("fields.%.140s: %w", f.Pattern, err)
		}
		if f.Write&Named != 0 && r.kind != kindUser {
			return fmt.Errorf("fields.%.140s: write: %w", f.Pattern, errNamed)
		}
		if err := f.checkWith(r.fields[:i]); err != nil {
			return fmt.Errorf("fields.%.140s: %w", f.Pattern, err)
		}
	}
	slices.SortFunc(r.fields, func(a, b FieldRule) int { return a.pattern.compare(&b.pattern) })
	return nil
}

// checkWith checks the rule against the other rules of its namespace.
func (f *FieldRule) checkWith(others []FieldRule) error {
	for i := range others {
		o := &others[i]
		switch {
		case o.Pattern == f.Pattern:
			return errors.New("it is given twice")
		case f.Max > 0 && o.Max > 0 && f.pattern.group() != "" && f.pattern.group() == o.pattern.group():
			return fmt.Errorf("max: %s already has the limit of the group %s", o.Pattern, f.pattern.group())
		case f.Of != "" && o.Pattern == f.Of && o.Of != "", o.Of == f.Pattern && f.Of != "":
			return errors.New("of: a field that is part of another one cannot have parts")
		}
	}
	return nil
}

// FieldMatch is how a field fits the rules of a namespace.
type FieldMatch struct {
	Rule   *FieldRule // nil if no pattern fits: the field belongs to the backend
	Parent string     // the field that Rule.Of names, or ""
	// Group is the prefix p/3/ of a field p/3/x if Rule.Max limits the fields with it, or "".
	Group string
	// OtherUser is set if the name has another user at {user}, so that no client of this user may
	// write the field.
	OtherUser bool
}

// MatchField returns how a field fits the rules, for a writer. For the backend, any user fits
// {user}.
func (r *Rule) MatchField(subject Subject, name string) FieldMatch {
	if state.IsBackend(name) {
		return FieldMatch{}
	}
	var other FieldMatch
	for i := range r.fields {
		f := &r.fields[i]
		if other.Rule != nil && len(f.pattern.literal()) < len(other.Rule.pattern.literal()) {
			break
		}
		m := f.pattern.match(name)
		if !m.fits {
			continue
		}
		if f.pattern.hasUser && !subject.Backend && (subject.User == "" || m.user != state.Escape(subject.User)) {
			if other.Rule == nil {
				other = FieldMatch{Rule: f, OtherUser: true}
			}
			continue
		}
		found := FieldMatch{Rule: f}
		if f.Of != "" {
			found.Parent = f.parent.fill(m)
		}
		if sub := f.pattern.subgroup(); f.Max > 0 && sub.tokens != nil {
			found.Group = sub.fill(m)
		}
		return found
	}
	return other
}

// GroupMax returns the most fields of a group. 0 means no limit.
func (r *Rule) GroupMax(group string) int {
	for i := range r.fields {
		if f := &r.fields[i]; f.Max > 0 && f.pattern.group() == group {
			return f.Max
		}
	}
	return 0
}

// Keep returns how long the state is kept after its last update. 0 means that the state never ends.
func (r *Rule) Keep() time.Duration {
	switch r.StateKeep {
	case 0:
		return DefaultStateKeep
	case KeepForever:
		return 0
	}
	return r.StateKeep
}

// GraceOf returns how long an owned field stays after its last owner has left, or GraceNever. f may
// be nil.
func (r *Rule) GraceOf(f *FieldRule) time.Duration {
	switch {
	case f != nil && f.Grace != 0:
		return f.Grace
	case r.Grace != 0:
		return r.Grace
	}
	return DefaultGrace
}
