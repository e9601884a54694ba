package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"switchboard/client"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// update is one change of a channel's state. A client and the backend make the same ones.
type update struct {
	channel string
	set     map[string]string // JSON by field
	del     []string
	add     map[string]addition
	touch   []string
	ifID    map[string]int64 // by field: the id that it must have, 0 for absent
	ttl     time.Duration    // zero means none
	own     bool
}

// writes reports whether the update sets or removes a field.
func (u update) writes(field string) bool {
	_, sets := u.set[field]
	return sets || slices.Contains(u.del, field)
}

// addition adds to a number, within bounds.
type addition struct {
	By  int64 `json:"by"`
	Min int64 `json:"min"`
	Max int64 `json:"max"`
}

// allows reports whether the sum is within the bounds.
func (a addition) allows(n int64) bool { return a.Min <= n+a.By && n+a.By <= a.Max }

// clauses returns the update for package client.
func (u update) clauses(key string, durable bool) []client.Clause {
	list := []client.Clause{client.Key(key)}
	if durable {
		list = append(list, client.Durable())
	}
	for field, value := range u.set {
		list = append(list, client.Set(field, json.RawMessage(value)))
	}
	for field, a := range u.add {
		list = append(list, client.AddWithin(field, a.By, a.Min, a.Max))
	}
	for field, id := range u.ifID {
		list = append(list, client.IfID(field, id))
	}
	if len(u.del) > 0 {
		list = append(list, client.Del(u.del...))
	}
	if len(u.touch) > 0 {
		list = append(list, client.Touch(u.touch...))
	}
	if u.ttl > 0 {
		list = append(list, client.TTL(u.ttl))
	}
	if u.own {
		list = append(list, client.Own())
	}
	return list
}

// body returns the update as the body of a push.
func (u update) body(key string, durable bool) map[string]any {
	body := map[string]any{"channel": u.channel, "key": key}
	put := func(name string, n int, value any) {
		if n > 0 {
			body[name] = value
		}
	}
	set := make(map[string]json.RawMessage, len(u.set))
	for field, value := range u.set {
		set[field] = json.RawMessage(value)
	}
	put("set", len(set), set)
	put("del", len(u.del), u.del)
	put("add", len(u.add), u.add)
	put("touch", len(u.touch), u.touch)
	put("if", len(u.ifID), u.ifID)
	put("ttl", int(u.ttl), u.ttl.Seconds())
	if durable {
		body["durable"] = true
	}
	return body
}

// updateCall is a call that made an update, or tried to.
type updateCall struct {
	update
	by      string // client id, or "the backend"
	durable bool
	// firstTry is the time of the first attempt, began that of the last one. ended is the time of the
	// answer.
	firstTry, began, ended time.Time

	id      int64 // of an accepted update; 0 for a refused one
	numbers map[string]int64
	refusal *stateRefusal // nil for an accepted update
}

// stateRefusal is the answer to an update that the state refused.
type stateRefusal struct {
	code   wire.ErrorCode
	fields map[string]*state.Shown // current fields; nil for an absent one
	group  string
	max    int
}

// newRefusal returns the refusal of package client.
func newRefusal(r *client.Refusal) *stateRefusal {
	refusal := &stateRefusal{code: r.Err.Code, group: r.Group, max: r.Max, fields: map[string]*state.Shown{}}
	for name, f := range r.Fields {
		if refusal.fields[name] = nil; f != nil {
			refusal.fields[name] = shownField(*f)
		}
	}
	return refusal
}

// shownField converts a field of package client.
func shownField(f client.Field) *state.Shown {
	shown := &state.Shown{ID: f.ID, Value: f.Value, Away: f.Away}
	if !f.Until.IsZero() {
		shown.Until = f.Until.UnixMilli()
	}
	return shown
}

// shownFields converts the fields of a snapshot.
func shownFields(s client.Snapshot) map[string]state.Shown {
	fields := make(map[string]state.Shown, len(s.Fields))
	for name, f := range s.Fields {
		fields[name] = *shownField(f)
	}
	return fields
}

// The groups of fields.
const (
	seatGroup   = "seat/"   // claimed by competing users; $max/seat/ limits it
	countGroup  = "count/"  // counters with bounds
	docGroup    = "doc/"    // compare-and-set with ids
	leaseGroup  = "lease/"  // fields with short leases
	memberGroup = "member/" // owned by the client whose id follows

	seatLimitField = "$max/" + seatGroup
	seatLimit      = 4 // the value of $max/seat/
	seatRuleLimit  = 6 // of the namespace: it holds even if Redis has lost $max/seat/
	countLimit     = 6 // counters are from 0 to this
)

// namespaces are the rules of all channels.
var namespaces = fmt.Sprintf(`{"*": {
	subscribe: users, publish: users, presence: users, history: users, state: users, durable: users, fields: {
		"%s*": {write: claim, max: %d}, "%s*": {write: users}, "%s*": {write: users}, "%s*": {write: users},
		"%s{user}/*": {write: users}}}}`,
	seatGroup, seatRuleLimit, countGroup, docGroup, leaseGroup, memberGroup)

// memberField is the field that a client owns.
func memberField(client string) string { return memberGroup + client }

// holderOf returns the user that holds what a client has set, "" for the backend.
func holderOf(client string) (user string) {
	user, _, isClient := strings.Cut(client, "/")
	if !isClient {
		return ""
	}
	return user
}

// ownerOf returns the client that owns the field, if it is an owned one.
func ownerOf(field string) (client string, ok bool) { return strings.CutPrefix(field, memberGroup) }
