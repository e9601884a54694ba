package events

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Recorder notes what has to be looked at. A broker calls it behind each change; none of its calls decides anything, so
// one too many costs a look and no event. A nil Recorder, and one of which nothing is wanted, notes nothing.
type Recorder struct {
	store  Store
	wanted []Kind
}

// NewRecorder writes into store what wanted needs; nil wants all [Kinds].
func NewRecorder(store Store, wanted []Kind) *Recorder {
	if wanted == nil {
		wanted = Kinds
	}
	return &Recorder{store: store, wanted: wanted}
}

func (r *Recorder) wants(kinds ...Kind) bool {
	return r != nil && slices.ContainsFunc(kinds, func(k Kind) bool { return slices.Contains(r.wanted, k) })
}

// UsersChanged is called when a client of each of the users was bound, here or again, or is no
// more, after the registry knows. The errors are in the order of the users.
func (r *Recorder) UsersChanged(ctx context.Context, users ...string) []error {
	if !r.wants(UserOnline, UserOffline) {
		return make([]error, len(users))
	}
	changes := make([]Change, len(users))
	for i, user := range users {
		changes[i] = Change{shardOf(userSort, user), userSort + user}
	}
	return r.store.Changed(ctx, Grace, changes...)
}

// ChannelsChanged is called when a server was bound to each of the channels, or unbound, after the
// registry knows. The errors are in the order of the channels. The system's own channels ($…) are
// not noted.
func (r *Recorder) ChannelsChanged(ctx context.Context, channels ...string) []error {
	errs := make([]error, len(channels))
	if !r.wants(ChannelOccupied, ChannelVacated) {
		return errs
	}
	changes, of := make([]Change, 0, len(channels)), make([]int, 0, len(channels))
	for i, channel := range channels {
		if !strings.HasPrefix(channel, "$") {
			changes, of = append(changes, Change{shardOf(channelSort, channel), channelSort + channel}), append(of, i)
		}
	}
	for k, err := range r.store.Changed(ctx, Grace, changes...) {
		errs[of[k]] = err
	}
	return errs
}

// Delivery is a message that should be acknowledged in time.
type Delivery struct {
	// User is whose devices it went to; "" for a push to a client by name.
	User string
	// Clients are where it is stored, each under an id. A user without devices has none: then nobody can acknowledge.
	Clients []Place
	// Data is the message's, compact JSON. It is kept here, since a queue may lose it to its cap or its TTL.
	Data []byte
	// Key is the push's idempotency key, if it has one.
	Key string
	// After is how long an acknowledgement may take. It must be positive.
	After time.Duration
}

// WatchDelivery has a [MessageUndelivered] told unless one of the clients acknowledges the message in time. It is called
// before the push is answered, for a push that is a duplicate too: whoever stored it may have died before. Calls with the
// same ids are one.
func (r *Recorder) WatchDelivery(ctx context.Context, d Delivery) error {
	if !r.wants(MessageUndelivered) {
		return nil
	}
	switch {
	case d.After <= 0:
		return errors.New("events: a delivery needs a time in which it should be acknowledged")
	case d.User == "" && len(d.Clients) == 0:
		return errors.New("events: a delivery needs a user or a client")
	case !json.Valid(d.Data):
		return errors.New("events: the data of a delivery is no JSON")
	}
	record, err := json.Marshal(watch{User: d.User, Clients: append([]Place{}, d.Clients...), Data: d.Data})
	if err != nil {
		return fmt.Errorf("watch a delivery: %w", err)
	}
	shard := shardOf(userSort, d.User)
	if d.User == "" {
		shard = shardOf(watchSort, d.Clients[0].Client)
	}
	return r.store.Watch(ctx, shard, watchSort+d.name(), record, d.After)
}

// name is the same for the same push: by its first id, since a push that is repeated may find more devices, but never an
// earlier id. Without devices it is by its key, and without that each is one of its own.
func (d Delivery) name() string {
	if len(d.Clients) > 0 {
		first := slices.MinFunc(d.Clients, func(a, b Place) int {
			return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Client, b.Client))
		})
		return hashed("i", first.Client, decimal(first.ID))
	}
	return hashed("k", d.User, cmp.Or(d.Key, rand.Text()))
}

// hashed begins with what it is of. No name has a control character, so none runs into the next.
func hashed(of string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return of + hex.EncodeToString(sum[:12])
}

// eventID is the id of a watched message's event; "" where its name may be used again for another message.
func eventID(entry string) string {
	if name := strings.TrimPrefix(entry, watchSort); strings.HasPrefix(name, "i") {
		return name
	}
	return ""
}
