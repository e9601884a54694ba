package queue

import (
	"crypto/sha256"
	"errors"
	"time"

	"switchboard/internal/redispipe"
)

var (
	// ErrStale is returned to whoever acts in a client's name with a generation that is below
	// the current one: the client is bound elsewhere, nothing was changed.
	ErrStale = errors.New("queue: stale generation")
	// ErrForgotten is returned when the current generation is below, or there is none: the store lost the
	// binding, as in a failover, or it expired. Nothing was changed; RefreshClients makes it again.
	ErrForgotten = errors.New("queue: the binding is forgotten")
	// ErrSecret is returned when a client without a user does not present the secret of the
	// client that has that id.
	ErrSecret = errors.New("queue: the secret is not that of the client")
	// ErrUnknownClient is returned by a push to a user's device that is not known (any
	// more) as that user's.
	ErrUnknownClient = errors.New("queue: unknown client of the user")
	// ErrNewChannel is returned by a push with Known to a channel without messages and position.
	ErrNewChannel = errors.New("queue: the channel is new")
	// ErrNotReplicated is returned by a durable push that was stored, but that no replica
	// confirmed in time. What is returned beside it is valid. Repeated with the same key it
	// waits for a replica again.
	ErrNotReplicated = redispipe.ErrNotReplicated
	// ErrNoReplicas is returned by a durable push to [Memory], which stores nothing then.
	ErrNoReplicas = errors.New("queue: in memory there are no replicas")
)

// Message is one stored message.
type Message struct {
	ID   int64  // position in its queue, below 2^53: (ms since 2020-01-01) × 4096 at least
	Data []byte // JSON; shared, not to be modified
}

// ChannelPush is one message to one channel.
type ChannelPush struct {
	Channel string
	Data    []byte // compact JSON
	Key     string // idempotency key, empty for none
	Durable bool   // return only when a replica has it, else ErrNotReplicated; see there
	// Cap and TTL take the place of ChannelCap, below it, and of ChannelTTL, up to MaxChannelTTL.
	// Zero means those.
	Cap int
	TTL time.Duration
	// Known stores nothing where that would bring the channel into being: ErrNewChannel. Not with
	// Durable.
	Known bool
}

// Appended is what AppendChannel did.
type Appended struct {
	ID        int64
	Prev      int64    // the id before it in this queue, 0 when none is known: the channel is new, or forgotten
	Duplicate bool     // the key was seen before: ID is the first one's, nothing was stored
	Servers   []string // members of ch_{channel}, read after storing
}

// ClientPush is one message to one client.
type ClientPush struct {
	Client string
	User   string        // when set: only if the client is known as this user's, else ErrUnknownClient
	Data   []byte        // compact JSON
	TTL    time.Duration // how long the list must live at least. Zero means the default
	Key    string        // idempotency key, empty for none

	Durable bool // as of ChannelPush

	// First names a group, for a message that several clients of a user get and of which only the first
	// acknowledgement counts: that one withdraws it from the others' queues, see Ack. It must not begin with a
	// digit, and be the same in all of them. Empty for none.
	First string
}

// ClientAppended is what AppendClient did.
type ClientAppended struct {
	ID         int64
	Prev       int64 // the id before it, 0 when it is the first ever
	Duplicate  bool
	Server     string // owner in c_{client}, empty when the client is offline
	Generation int64
}

// Ack is an acknowledgement in a client's name.
type Ack struct {
	Client         string
	Generation, ID int64
}

// Outcome is what one of several calls would have returned that are made at once.
type Outcome[T any] struct {
	Value T
	Err   error
}

// Marker stands in a queue for messages that the store lost; see [Loss].
type Marker struct {
	ID, Prev int64    // as of a message
	Data     []byte   // for [Loss]
	Servers  []string // who should read it
}

// Page is a stretch of a queue.
type Page struct {
	Messages []Message // markers among them, see [Loss]
	Hole     int64     // of a channel: id of the last marker ever, 0 for none
	Floor    int64     // highest id that is gone without having been received; everything held is above
	Last     int64     // last id ever assigned
	From     int64     // of a channel: the id behind which Messages begin, `after` when Complete
	Clock    int64     // of a channel: what the store's clock showed, Unix ms
	// Complete: nothing between `after` and the first of Messages is missing. For a
	// channel: after is 0 and nothing was ever trimmed, or it is the floor, the last id, or an id still
	// held. When it is false Messages begin at the oldest that is held, or, when after is above the floor (a
	// store that lost its last writes does not know it), behind the nearest id below that is held.
	Complete bool
	// More: there are messages behind the last of Messages. Where other writers left many malformed
	// members in a channel, it may be only those; the next page is then the empty end.
	More bool
}

// ChannelRead is what ReadChannel is asked.
type ChannelRead struct {
	Channel string
	After   int64
	Limit   int
	Bytes   int // about the most in the page, at least one message. Zero means MaxPageBytes, which is the most
}

// Claim is what BindClients binds.
type Claim struct {
	Client, User, Server string // User is "" for none
	// Instance is one run of the client's program, and Attempt grows with each of its connects: so one that
	// was overtaken on the way does not take the client back. "" for a client that does not say.
	Instance string
	Attempt  int64
	// Secret is presented by a client without a user. It is not read with a user.
	Secret SecretHash
}

// SecretHash is what the store keeps of a secret: the first half of its SHA-256. Secrets have 128
// random bits, so there is nothing to try out, and a slow hash would only cost every connect.
type SecretHash [sha256.Size / 2]byte

// HashSecret returns what the store keeps of secret.
func HashSecret(secret string) SecretHash {
	sum := sha256.Sum256([]byte(secret))
	return SecretHash(sum[:sha256.Size/2])
}

// Held is a client that a server has.
type Held struct {
	Client, User string // User is "" for none
	Generation   int64  // of its binding
	Secret       SecretHash
}

// Bound is the outcome of BindClients for one claim.
type Bound struct {
	Generation int64  // of this binding, higher than any before
	Server     string // who held the client until now, "" for nobody
	Before     int64  // generation until now, 0 for none
	Acked      int64  // highest id that the client acknowledged: the window begins behind it
	Queued     int    // messages waiting
	Last       int64  // last id ever assigned in its queue, also by another writer
	// Owes: messages with First were acknowledged, and nobody has said that all others are withdrawn. An Ack of Acked
	// does it.
	Owes bool
}

// Client is what c_{client} says.
type Client struct {
	User       string
	Server     string // "" when offline
	Generation int64
	Since      time.Time // of the current binding, on the store's clock
	Queued     int
	Last       int64 // last id ever assigned in its queue
	Acked      int64 // highest id that the client acknowledged, whichever the session
}
