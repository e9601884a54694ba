package queue

import (
	"crypto/sha256"
	"errors"
	"time"

	"switchboard/internal/redispipe"
	"switchboard/internal/state"
)

var (
	// ErrStale is returned for a generation below the client's current one: the client is bound
	// elsewhere. Nothing was changed.
	ErrStale = errors.New("queue: stale generation")
	// ErrForgotten is returned for a generation above the client's current one, or if there is none:
	// the store lost the binding, as in a failover, or it expired. Nothing was changed. Call
	// RefreshClients to restore the binding.
	ErrForgotten = errors.New("queue: the binding is forgotten")
	// ErrLate is returned for a bind that the store executed too late: the client was bound after the
	// claim was made, or MaxBindDelay has passed. Nothing was changed. A caller that still has the
	// connection may claim again, with Bound.Asked.
	ErrLate = errors.New("queue: the bind came late")
	// ErrSecret is returned for a client without a user if its id is in use with another secret.
	ErrSecret = errors.New("queue: wrong secret for the client")
	// ErrUnknownClient is returned for a push to a client of a user if the client has no record, as
	// after its expiry, or the record is not that user's.
	ErrUnknownClient = errors.New("queue: unknown client of the user")
	// ErrNewChannel is returned for a push with ExistingOnly to a channel without messages and
	// position.
	ErrNewChannel = errors.New("queue: the channel is new")
	// ErrNotReplicated is returned for a durable push that was stored, but that no replica confirmed
	// in time. The value returned with it is valid. The same push with the same key waits for a
	// replica again.
	ErrNotReplicated = redispipe.ErrNotReplicated
	// ErrNoReplicas is returned for a durable push to [Memory]. Nothing was stored.
	ErrNoReplicas = errors.New("queue: a store in memory has no replicas")
)

// MaxBindDelay is how long after its claim a bind may be executed. A store call of a broker ends
// before that. But a command may stay in the buffers of a broken connection or of a stopped Redis
// for minutes, and be executed when the client has left or is connected elsewhere.
const MaxBindDelay = 10 * time.Second

// Message is one stored message.
type Message struct {
	ID   int64  // position in its queue, below 2^53, see the package documentation
	Data []byte // JSON; shared, not to be modified
}

// ChannelPush is one message to one channel.
type ChannelPush struct {
	Channel string
	Data    []byte // compact JSON, or a state.Entry without changes of fields
	Key     string // idempotency key, empty for none
	Durable bool   // return only after a replica has the message, else ErrNotReplicated
	// Cap replaces Options.ChannelCap, if it is lower. Zero means the option.
	Cap int
	// TTL replaces Options.ChannelTTL. It is limited to MaxChannelTTL. Zero means the option.
	TTL time.Duration
	// ExistingOnly stores nothing if the channel is new, and returns ErrNewChannel.
	ExistingOnly bool
	// Update changes the channel's state under the id of the message, and Data is not used. If the
	// update is refused, the error is a *state.Refusal. Nil for a message without fields.
	Update *state.Update
	// Script makes the Update by a script of another package. Nil for none.
	Script *ScriptCall
}

// Appended is the result of AppendChannel. If an Update was refused, it describes the entry of
// fields that were due, which was stored nevertheless; ID is 0 if there is none.
type Appended struct {
	ID        int64
	Data      []byte   // as stored: compact JSON, or a state.Entry; nil for a duplicate
	Prev      int64    // the id before it, 0 for a duplicate or if the channel is new or forgotten
	Duplicate bool     // the key was seen before: ID is that of the first push, nothing was stored
	Servers   []string // members of ch_{channel}, read after storing

	Numbers map[string]int64 // of an Update: the results of state.Add; a duplicate repeats them
	Due     int64            // of an Update or a StateStep: when the next field ends, or the whole state, Unix ms; 0 for never

	KeepUntil int64 // of a StateStep: see StatePage

	// Clock is the store's clock at an Update, Unix ms: the time from which leases count unless the
	// update has another one. A duplicate has the clock of the call.
	Clock int64

	Reply string // of a Script; a duplicate repeats it
}

// ClientPush is one message to one client.
type ClientPush struct {
	Client string
	User   string        // if set, the client must be known as this user's, else ErrUnknownClient
	Data   []byte        // compact JSON
	TTL    time.Duration // minimum lifetime of the list. Zero means the default
	Key    string        // idempotency key, empty for none

	Durable bool // as in ChannelPush

	// AckGroup groups the copies of one message in the queues of several clients of a user. The
	// first client that acknowledges its copy withdraws the others, see [Redis.Ack]. A group must
	// not begin with a digit, and is the same for all copies. Empty for none.
	AckGroup string
}

// ClientAppended is the result of AppendClient.
type ClientAppended struct {
	ID         int64
	Prev       int64 // the id before it, 0 for a duplicate or the first message ever
	Duplicate  bool
	Server     string // owner in c_{client}, empty if the client is offline
	Generation int64
}

// Ack is an acknowledgement by a client.
type Ack struct {
	Client         string
	Generation, ID int64
}

// Outcome is the result of one item of a batch.
type Outcome[T any] struct {
	Value T
	Err   error
}

// Marker is an entry in a queue that stands for messages that the store lost; see [Loss].
type Marker struct {
	ID, Prev int64    // the marker's id, and the id before it
	Data     []byte   // parsed by [Loss]
	Servers  []string // servers that have readers of the queue
}

// Page is a consecutive part of a queue.
type Page struct {
	Messages   []Message // markers among them, see [Loss]
	LastMarker int64     // of a channel: id of its last marker, 0 for none
	Floor      int64     // highest id that was dropped unreceived; all held messages are above
	Last       int64     // last id ever assigned
	From       int64     // of a channel: Messages begin after this id. It is `after` if Complete
	Clock      int64     // of a channel: the store's clock, Unix ms
	// Complete means that no message is missing between `after` and the first of Messages. A channel's
	// page is Complete if after is 0 and nothing was ever trimmed, or if after is the floor, the last
	// id, or an id still held. Otherwise Messages begin at the oldest held message. If the store lost
	// its last writes, and the message with the id `after` is among them, Messages begin after the
	// nearest held id below `after`.
	Complete bool
	// More means that there are messages after the last of Messages. If other writers left many
	// malformed members in a channel, More may be true although only such members follow. The next
	// page is then empty, and its More is false.
	More bool
}

// ChannelRead is one read for ReadChannels.
type ChannelRead struct {
	Channel string
	After   int64
	Limit   int
	Bytes   int // most bytes of the page, approximately; at least one message. Zero means MaxPageBytes, the maximum
	// Reach leaves out all messages, unless the page is complete and has the last message, or ends at
	// this id or above. Zero means that the page has them in any case.
	Reach int64
}

// Claim is one binding for BindClients.
type Claim struct {
	Client, User, Server string // User is "" for none
	// Instance identifies one run of the client's program, and Attempt grows with each of its
	// connects. If a later attempt of the same instance was bound, the error is ErrStale. Instance is
	// "" if the client does not send it.
	Instance string
	Attempt  int64
	// Asked is the time of the claim on the store's clock, Unix ms. It may be too early. Zero means
	// the time of the call. If the client was bound after it, the error is ErrLate.
	Asked int64
	// Secret is presented by a client without a user. It is ignored for a client with a user.
	Secret SecretHash
}

// SecretHash is the first half of a secret's SHA-256, which the store keeps. Secrets have 128
// random bits, which cannot be guessed. A slow hash would only make every connect more expensive.
type SecretHash [sha256.Size / 2]byte

// HashSecret returns the hash of secret.
func HashSecret(secret string) SecretHash {
	sum := sha256.Sum256([]byte(secret))
	return SecretHash(sum[:sha256.Size/2])
}

// HeldClient is a client that is bound to the server that calls RefreshClients.
type HeldClient struct {
	Client, User string // User is "" for none
	Generation   int64  // of its binding
	Secret       SecretHash
}

// Bound is the outcome of BindClients for one claim.
type Bound struct {
	Generation     int64  // of this binding, higher than any before
	PrevServer     string // the owner until now, "" for none
	PrevGeneration int64  // the generation until now, 0 for none
	Acked          int64  // highest id that the client acknowledged: the window begins after it
	Queued         int    // messages waiting
	Last           int64  // last id ever assigned in its queue, including ids of other writers
	// WithdrawalDue means that the client acknowledged messages with an AckGroup, but that the
	// other copies may not be withdrawn yet. An Ack of Acked withdraws them.
	WithdrawalDue bool
	// Subscribed means that the client has no user, and that the backend may have subscribed it: there
	// may be a list for registry.Redis.Subscriptions.
	Subscribed bool
	// Asked is only set with ErrLate. It is the [Claim.Asked] with which the claim is not late.
	Asked int64
}

// Client is the record of a client, c_{client}.
type Client struct {
	User       string
	Server     string // "" if offline
	Generation int64
	Since      time.Time // of the current binding, on the store's clock
	Queued     int
	Last       int64      // last id ever assigned in its queue
	Acked      int64      // highest id that the client acknowledged in any session
	Secret     SecretHash // of a client without a user that was bound
}
