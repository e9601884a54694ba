package queue

import (
	"context"
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

// Queue keeps what has not been received yet. Both implementations, [Redis] and [Memory],
// keep this contract; the suite in conformance_test.go runs over both. All calls
// are safe for concurrent use, and concurrent calls share round trips.
type Queue interface {
	// AppendChannel stores a message in the channel, caps it, and then reads who holds subscribers. With a
	// key seen within KeyTTL it stores nothing and gives the first id. Data is the caller's to check, here
	// and in AppendClient: what is not compact JSON is passed over by whoever reads it.
	AppendChannel(ctx context.Context, push ChannelPush) (Appended, error)
	// AppendChannels is AppendChannel for each push, in as few round trips as can be. What is wrong with one does not
	// concern the others. They happen in no particular order.
	AppendChannels(ctx context.Context, pushes []ChannelPush) []Outcome[Appended]
	// ReadChannel is up to limit messages behind after, and never more than about
	// MaxPageBytes (at least one). limit 0 reads the position only, and More says whether anything is
	// behind after.
	ReadChannel(ctx context.Context, channel string, after int64, limit int) (Page, error)
	// ReadChannels is ReadChannel for each of them, likewise.
	ReadChannels(ctx context.Context, reads []ChannelRead) []Outcome[Page]
	// KeepPositions has the positions of channels known for MetaTTL from now, where they are known:
	// those that have readers. After that a reader's position is told to be incomplete.
	KeepPositions(ctx context.Context, channels []string) error
	// ChannelSize is the number of messages held.
	ChannelSize(ctx context.Context, channel string) (int, error)
	// TrimChannel is the janitor's: when the newest message is older than maxAge all go, else
	// all but the newest maxCount. Both move the floor. It says how many went; with dryRun how many would go.
	TrimChannel(ctx context.Context, channel string, maxAge time.Duration, maxCount int, dryRun bool) (int, error)

	// BindClients makes a server the owner of each client, all different ones, under a new
	// generation and keeps the user in the record. What is wrong with one does not concern the
	// others. The name of a client with a user begins with that, so the record can only be that
	// user's; one that an older version left to another user starts over with an empty queue. A
	// client without a user is bound when its id is new, or was pushed to and never bound, or with
	// the secret that it had; else ErrSecret. ErrStale when the same instance of the client was
	// bound by a later attempt.
	BindClients(ctx context.Context, claims []Claim) []Outcome[Bound]
	// RefreshClients renews the record's TTL of each of list, all different clients, and asserts
	// server as the owner, if the generation is still the current one, or if the record was lost,
	// or went back to an older generation in a failover: then it is made again with this
	// generation, and with the secret. ErrStale when a higher one is current.
	RefreshClients(ctx context.Context, server string, list []Held) []error
	// Unbind ends the binding: the client is offline, its queue stays. ErrStale and ErrForgotten when the generation
	// is not current.
	Unbind(ctx context.Context, client string, generation int64) error
	// Release is the janitor's Unbind: it takes the client from server if it is still the
	// owner, and returns whose it is and the generation released. released is false when another owns it or nobody.
	Release(ctx context.Context, client, server string) (user string, generation int64, released bool, err error)
	// Client is the client's record; known is false when there is none.
	Client(ctx context.Context, client string) (c Client, known bool, err error)

	// AppendClient stores a message in the client's list, caps it (the floor moves), and
	// returns the owner. A client never seen gets a record without user and owner, so that it finds the message.
	AppendClient(ctx context.Context, push ClientPush) (ClientAppended, error)
	// AppendClients is to AppendClient what AppendChannels is to AppendChannel.
	AppendClients(ctx context.Context, pushes []ClientPush) []Outcome[ClientAppended]
	// Window is up to limit messages behind after, all of them among the first MaxWindow of the
	// list. ErrStale and ErrForgotten as above. Page.Floor above after means that messages were lost to the cap or the TTL;
	// Page.Complete is false then. More without Messages: the whole window is on the way, read again after an Ack.
	Window(ctx context.Context, client string, generation, after int64, limit int) (Page, error)
	// Ack removes everything up to id from the head of the list and says how many went. An id
	// never assigned counts as the last one. ErrStale and ErrForgotten as above. Messages with First among those are
	// withdrawn from the queues of the user's other clients: taken out, where they are still waiting, and neither lost nor a
	// gap there. An error may mean that this is not done yet; the same call again does it, and so does any later one.
	Ack(ctx context.Context, client string, generation, id int64) (int, error)
	// Acks is to Ack what AppendChannels is to AppendChannel.
	Acks(ctx context.Context, acks []Ack) []Outcome[int]

	// ConfirmChannel looks for a message that AppendChannel stored. It is nil when the store has it, or
	// had it until it was trimmed or expired. When the store has lost it, a marker in the channel tells
	// that from now on, and is returned by the first call that finds it so.
	ConfirmChannel(ctx context.Context, channel string, id int64) (*Marker, error)
	// ConfirmClient is the same for AppendClient; an acknowledged message is not lost.
	ConfirmClient(ctx context.Context, client string, id int64) (*Marker, error)

	// PushRequest appends a client request to qq_{List}, for workers that pop it from the head. The
	// list expires RequestTTL after the last push. ErrFull, in one of its kinds, when the list or
	// the sender's share has no room.
	PushRequest(ctx context.Context, request Request) error
}
