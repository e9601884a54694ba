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

// A Recorder schedules checks. A broker calls it after each change. An unnecessary call costs one
// check and makes no event. A nil Recorder does nothing.
type Recorder struct {
	store  Store
	wanted []Kind
}

// NewRecorder returns a Recorder that schedules the checks for the wanted kinds of events. If
// wanted is nil, these are all [Kinds].
func NewRecorder(store Store, wanted []Kind) *Recorder {
	if wanted == nil {
		wanted = Kinds
	}
	return &Recorder{store: store, wanted: wanted}
}

func (r *Recorder) wants(kinds ...Kind) bool {
	return r != nil && slices.ContainsFunc(kinds, func(k Kind) bool { return slices.Contains(r.wanted, k) })
}

// UsersChanged schedules a check of each user. Call it after you have written a client's binding to
// the registry, for the first time or again, or have removed it. The errors are in the order of the
// users.
func (r *Recorder) UsersChanged(ctx context.Context, users ...string) []error {
	if !r.wants(UserOnline, UserOffline) {
		return make([]error, len(users))
	}
	checks := make([]Check, len(users))
	for i, user := range users {
		checks[i] = Check{shardOf(userPrefix, user), userPrefix + user}
	}
	return r.store.Schedule(ctx, Grace, checks...)
}

// ChannelsChanged schedules a check of each channel. Call it after you have bound a server to the
// channels in the registry, or unbound it. The errors are in the order of the channels. It ignores
// the system's own channels ($…).
func (r *Recorder) ChannelsChanged(ctx context.Context, channels ...string) []error {
	errs := make([]error, len(channels))
	if !r.wants(ChannelOccupied, ChannelVacated) {
		return errs
	}
	checks, indexes := make([]Check, 0, len(channels)), make([]int, 0, len(channels))
	for i, channel := range channels {
		if !strings.HasPrefix(channel, "$") {
			checks, indexes = append(checks, Check{shardOf(channelPrefix, channel), channelPrefix + channel}), append(indexes, i)
		}
	}
	for k, err := range r.store.Schedule(ctx, Grace, checks...) {
		errs[indexes[k]] = err
	}
	return errs
}

// An AckDeadline is a message that clients must acknowledge within a time.
type AckDeadline struct {
	// User is the recipient; "" for a push to a client.
	User string
	// Clients are the clients that have the message in their queues, each with the id of its copy. It
	// is empty for a user without clients; then no acknowledgement is possible.
	Clients []ClientMessage
	// Data is the data of the message, compact JSON. It is stored with the deadline, because a queue
	// may drop the message when it reaches its limit or TTL.
	Data []byte
	// Key is the idempotency key of the push, if it has one.
	Key string
	// After is the time that the clients have to acknowledge the message. It must be positive.
	After time.Duration
}

// SetAckDeadline creates a [MessageUndelivered] event at the deadline unless one of the clients
// acknowledges the message before. Call it before the push is answered, and also for a repeated
// push: the process that stored the message may have died before it set the deadline. Repeated
// calls with the same ids have no effect.
func (r *Recorder) SetAckDeadline(ctx context.Context, d AckDeadline) error {
	if !r.wants(MessageUndelivered) {
		return nil
	}
	switch {
	case d.After <= 0:
		return errors.New("events: an acknowledgement deadline needs a positive time")
	case d.User == "" && len(d.Clients) == 0:
		return errors.New("events: an acknowledgement deadline needs a user or a client")
	case !json.Valid(d.Data):
		return errors.New("events: the data of an acknowledgement deadline is not valid JSON")
	}
	record, err := json.Marshal(undeliveredEvent{User: d.User, Clients: append([]ClientMessage{}, d.Clients...), Data: d.Data})
	if err != nil {
		return fmt.Errorf("set an acknowledgement deadline: %w", err)
	}
	shard := shardOf(userPrefix, d.User)
	if d.User == "" {
		shard = shardOf(deadlinePrefix, d.Clients[0].Client)
	}
	return r.store.SetDeadline(ctx, shard, deadlinePrefix+d.name(), record, d.After)
}

// Emit creates an event of another package. data is a JSON object without the members type, id and
// at, and kind is one of [Kinds]. Events about the same subject are in one shard. A repeated call
// with the same subject and key has no effect, or repeats the event under the same id.
func (r *Recorder) Emit(ctx context.Context, kind, subject, key string, data []byte) error {
	if !r.wants(Kind(kind)) {
		return nil
	}
	if !slices.Contains(Kinds, Kind(kind)) || !json.Valid(data) || len(data) < 2 || data[0] != '{' {
		return fmt.Errorf("events: %.40q is not a kind, or its data is not a JSON object", kind)
	}
	record := fmt.Appendf(nil, `{"type":%q`, kind)
	if len(data) > len("{}") {
		record = append(append(record, ','), data[1:len(data)-1]...)
	}
	record = append(record, '}')
	return r.store.SetDeadline(ctx, shardOf(channelPrefix, subject), deadlinePrefix+hash(byEmit, kind, subject, key), record, 0)
}

// name returns the same name for repeats of the same push. It is derived from the lowest message
// id: a repeated push may find more clients, but never a lower id. Without clients it is derived
// from the key. Without clients and key it is random.
func (d AckDeadline) name() string {
	if len(d.Clients) > 0 {
		lowest := slices.MinFunc(d.Clients, func(a, b ClientMessage) int {
			return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Client, b.Client))
		})
		return hash(byID, lowest.Client, decimal(lowest.ID))
	}
	return hash(byKey, d.User, cmp.Or(d.Key, rand.Text()))
}

// First character of the name of an AckDeadline: the name has a hash of these fields.
const (
	byID  = "i" // client and message id
	byKey = "k" // user and key
	// byEmit begins the name of an event of Emit: a hash of kind, subject and key.
	byEmit = "e"
	// byLogID begins the id of an event about fields: a hash of channel and id.
	byLogID = "f"
)

// hash returns source, followed by a hash of the parts. The separator is unambiguous, because names
// have no control characters.
func hash(source string, parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\x00")))
	return source + hex.EncodeToString(sum[:12])
}

// eventID returns the id for the event of an unacknowledged message, or of Emit: the name of its
// deadline. If the name is made of the key of a push, a later message may get the same name. Then
// eventID returns "", and the store chooses an id.
func eventID(entry string) string {
	if name := strings.TrimPrefix(entry, deadlinePrefix); strings.HasPrefix(name, byID) || strings.HasPrefix(name, byEmit) {
		return name
	}
	return ""
}
