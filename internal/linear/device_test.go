package linear

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// errNoAnswer is returned for a call that may or may not have happened.
var errNoAnswer = errors.New("no answer from a broker")

// remoteStore is a store that a broker serves.
type remoteStore interface {
	store
	identity() device
	// reconnect ends the connection and connects again, perhaps to another broker.
	reconnect(ctx context.Context) error
}

// brokerGrace is the grace period of the namespace, about as long as a reconnect: some fields end.
const brokerGrace = 10 * time.Millisecond

// groupLimits are the limits of groups in the namespace.
var groupLimits = map[string]int{"seat/": seatMax, "member/": 2}

// brokerFields are the names that the clients of brokers use.
var brokerFields = []string{
	"turn", "turn", "count", "count", "doc", "seat/1", "seat/2", "seat/3", "seat/4", "seat/5", "$max/seat/",
	"member/amy", "member/bob", "member/cat", "part/amy/a", "part/bob/a", "part/cat/a",
}

// device is a client of a broker, or the backend.
type device struct {
	user, client string // "" for the backend
	owner        bool   // it writes the field that belongs to its user
}

func (d device) identity() device { return d }

// mayWrite reports whether the rules of the namespace allow to write a field, without its state.
// The second device of a user does not own the user's field, so that a field has one owner at most.
func (d device) mayWrite(name string) bool {
	switch {
	case d.user == "":
		return true
	case strings.HasPrefix(name, "$"):
		return false
	case strings.HasPrefix(name, "member/"):
		return d.owner && name == "member/"+d.user
	}
	return true
}

// conform makes an update what the brokers make of it according to the namespace.
func (d device) conform(u *state.Update, ttl time.Duration) {
	u.Writer, u.Client, u.Generation, u.Server, u.Limits = state.BackendHolder, d.client, unknownGeneration, "", state.Limits{}
	if d.user != "" {
		u.Writer = state.UserHolder(d.user)
	}
	u.Ops = slices.DeleteFunc(u.Ops, func(op state.Op) bool { return !d.mayWrite(op.Field) })
	if len(u.Ops) == 0 {
		u.Ops = []state.Op{{Field: "turn", Kind: state.Set, Value: u.Data}}
	}
	// The order of brokers, and of names in JSON: it decides which refusal comes first.
	slices.SortFunc(u.Ops, func(a, b state.Op) int {
		return cmp.Or(cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Field, b.Field))
	})
	for i := range u.Ops {
		op := &u.Ops[i]
		*op = state.Op{Field: op.Field, Kind: op.Kind, Value: op.Value, By: op.By, Min: op.Min, Max: op.Max, TTL: ttl}
		op.GroupMax = groupLimits[op.Field[:strings.Index(op.Field, "/")+1]]
		op.Claim = d.user != "" && strings.HasPrefix(op.Field, "seat/")
		if strings.HasPrefix(op.Field, "member/") && d.user != "" && op.Kind != state.Delete {
			op.Own, op.Grace = state.Own, brokerGrace
		}
		if part, is := strings.CutPrefix(op.Field, "part/"); is {
			user, _, _ := strings.Cut(part, "/")
			op.Parent, op.HeldParent = "member/"+user, d.user != ""
		}
	}
	for i := range u.If {
		if cond := &u.If[i]; cond.Kind == state.IsID && cond.ID == 0 {
			cond.Kind = state.IsAbsent
		}
	}
}

// fieldOf returns a field as far as a page or a refusal shows it. The end of the field is that of
// its lease or its grace.
func fieldOf(shown *state.Shown) *state.Field {
	switch {
	case shown == nil:
		return nil
	case !shown.Away:
		return &state.Field{ID: shown.ID, Value: shown.Value, Lease: shown.Until}
	case shown.Until == 0:
		return &state.Field{ID: shown.ID, Value: shown.Value, Away: state.AwayStays}
	}
	return &state.Field{ID: shown.ID, Value: shown.Value, Away: shown.Until}
}

// refusalOf returns the refusal that a broker's error is, or errNoAnswer.
func refusalOf(err *wire.Error, fields map[string]*state.Shown, group string, limit int) error {
	switch err.Code {
	case wire.Unavailable, wire.Timeout:
		return errNoAnswer
	}
	r := &state.Refusal{Err: err, Group: group, Max: limit}
	if !showsFields(err.Code) {
		return r
	}
	r.Fields = make(map[string]*state.Field)
	for name, shown := range fields {
		r.Fields[name] = fieldOf(shown)
	}
	return r
}

// showsFields reports whether all brokers and clients show the fields of such a refusal.
func showsFields(code wire.ErrorCode) bool {
	return code == wire.Conflict || code == wire.Full || code == wire.OutOfRange
}
