package queue

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"switchboard/internal/setting"
)

const (
	// MaxWindow is the number of messages at the head of a client's list that form its window: the
	// most unacknowledged messages in flight.
	MaxWindow = 256
	// maxRead is the number of messages at the head of a client's list that ReadClient reads; a
	// multiple of 32.
	maxRead = 4096
	// MaxPageBytes is the most bytes of one page, approximately.
	MaxPageBytes = 1 << 20
	// MaxWindowBytes is MaxPageBytes for a page of a window. It is lower, because what the client's
	// socket does not take is read again.
	MaxWindowBytes = 64 << 10
	// MaxChannelTTL is the highest TTL that a push may set for a channel's messages, unless
	// Options.ChannelTTL is higher.
	MaxChannelTTL = 30 * 24 * time.Hour
	// maxPage is the most messages of one page, for any limit.
	maxPage = 1024
)

// Options bounds the queues. All servers that share a Redis should have the same options. Zero
// means the default in a field's tag, if it has one.
type Options struct {
	// Prefix begins every key in Redis. It must not contain braces. Zero means none.
	Prefix string

	ClientCap int `setting:"limits.client_queue" default:"1000" help:"messages that wait for one client; one more drops the oldest"`
	// ClientTTL is how long a client's list lives after a push without a TTL. It is a minimum, like
	// RecordTTL, ChannelTTL and MetaTTL; see the package documentation.
	ClientTTL time.Duration `setting:"times.client_ttl" default:"1h" help:"how long messages wait for a client"`
	// RecordTTL is how long a client is known after its last refresh. Zero means 150 min.
	RecordTTL  time.Duration
	ChannelCap int `setting:"limits.channel_messages" default:"10000" help:"messages that a channel keeps, until the janitor trims it to the newest 1000"`
	// ChannelMaxBytes is the most bytes of a channel. A single larger message is kept alone.
	ChannelMaxBytes int64 `setting:"limits.channel_bytes" default:"8388608" help:"bytes that a channel keeps"`
	// ChannelTTL is how long a channel's messages live after the last push.
	ChannelTTL time.Duration `setting:"times.channel_ttl" default:"1h" help:"how long a channel's messages are kept after the last push; a janitor empties the channel earlier, by default after 30m"`
	// MetaTTL is how long a channel's last id and floor are known after its messages expired or
	// were trimmed, and after the last KeepPositions.
	MetaTTL time.Duration `setting:"times.position_ttl" default:"6h" help:"how long a channel without messages and subscribers is remembered: a client that\ncomes back later receives a gap"`
	// KeyTTL is how long an idempotency key is known. Zero means 10 min.
	KeyTTL     time.Duration
	RequestCap int `setting:"limits.request_queue" default:"10000" help:"client requests that wait in one qq_ list"`
	// RequestBytes is the most bytes of requests in one list. A larger request is accepted if the
	// list is empty.
	RequestBytes int64 `setting:"limits.request_bytes" default:"8388608" help:"bytes that wait in one qq_ list"`
	RequestShare int   `setting:"limits.request_share" default:"100" help:"requests of one user that wait in a qq_ list; for clients without a user, requests\nof one address"`
	// RequestShareBytes is the most bytes of one sender's requests in one list. A larger request is
	// accepted if the sender has no other one in the list.
	RequestShareBytes int64 `setting:"limits.request_share_bytes" default:"1048576" help:"bytes of those requests"`
	// RequestTTL is how long a list lives after the last push.
	RequestTTL time.Duration `setting:"times.request_ttl" default:"1h" help:"how long requests wait for a worker; each new request to a qq_ list restarts the time of all requests in it"`
	// Replaced reports whether another Redis may have taken over within the last minutes. Nil means
	// that it never does.
	Replaced func() bool
	// Now is the clock of [Memory]. [Redis] uses the clock of its server. Nil means time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	setting.Fill(&o)
	o.RecordTTL = cmp.Or(o.RecordTTL, 150*time.Minute)
	o.KeyTTL = cmp.Or(o.KeyTTL, 10*time.Minute)
	if o.Replaced == nil {
		o.Replaced = func() bool { return false }
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	return o
}

// Validate returns an error that names the first invalid option. The constructors do not call it.
func (o Options) Validate() error {
	if strings.ContainsAny(o.Prefix, "{}") {
		return fmt.Errorf("queue: Prefix %q: braces would move the hash tag of every key", o.Prefix)
	}
	d := o.withDefaults()
	for _, c := range []struct {
		name  string
		value int64
	}{
		{"ClientCap", int64(d.ClientCap)},
		{"ChannelCap", int64(d.ChannelCap)},
		{"ChannelMaxBytes", d.ChannelMaxBytes},
		{"RequestCap", int64(d.RequestCap)},
		{"RequestBytes", d.RequestBytes},
		{"RequestShare", int64(d.RequestShare)},
		{"RequestShareBytes", d.RequestShareBytes},
	} {
		if c.value < 1 {
			return fmt.Errorf("queue: %s %d: must be positive", c.name, c.value)
		}
	}
	for _, c := range []struct {
		name  string
		value time.Duration
	}{
		{"ClientTTL", d.ClientTTL},
		{"RecordTTL", d.RecordTTL},
		{"ChannelTTL", d.ChannelTTL},
		{"MetaTTL", d.MetaTTL},
		{"KeyTTL", d.KeyTTL},
		{"RequestTTL", d.RequestTTL},
	} {
		if c.value < time.Millisecond {
			return fmt.Errorf("queue: %s %v: must be 1ms at least", c.name, c.value)
		}
	}
	return nil
}
