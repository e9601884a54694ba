package queue

import (
	"cmp"
	"fmt"
	"strings"
	"time"
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

// Options bounds the queues. All servers that share a Redis should have the same options.
type Options struct {
	// Prefix begins every key in Redis. It must not contain braces. Zero means none.
	Prefix string
	// ClientCap is the most messages in one client's list; the oldest are dropped. Zero means 1000.
	ClientCap int
	// ClientTTL is how long a client's list lives after a push without a TTL. It is a minimum, like
	// RecordTTL, ChannelTTL and MetaTTL; see the package documentation. Zero means 1 h.
	ClientTTL time.Duration
	// RecordTTL is how long a client is known after its last refresh. Zero means 150 min.
	RecordTTL time.Duration
	// ChannelCap is the most messages of a channel; the oldest are dropped. Zero means 10,000.
	ChannelCap int
	// ChannelMaxBytes is the most bytes of a channel. A single larger message is kept alone. Zero
	// means 8 MiB.
	ChannelMaxBytes int64
	// ChannelTTL is how long a channel's messages live after the last push. Zero means 1 h.
	ChannelTTL time.Duration
	// MetaTTL is how long a channel's last id and floor are known after its messages expired or
	// were trimmed, and after the last KeepPositions. Zero means 6 h.
	MetaTTL time.Duration
	// KeyTTL is how long an idempotency key is known. Zero means 10 min.
	KeyTTL time.Duration
	// RequestCap is the most requests in one list. Zero means 10,000.
	RequestCap int
	// RequestBytes is the most bytes of requests in one list. A larger request is accepted if the
	// list is empty. Zero means 8 MiB.
	RequestBytes int64
	// RequestShare is the most requests of one sender in one list. Zero means 100.
	RequestShare int
	// RequestShareBytes is the most bytes of one sender's requests in one list. A larger request is
	// accepted if the sender has no other one in the list. Zero means 1 MiB.
	RequestShareBytes int64
	// RequestTTL is how long a list lives after the last push. Zero means 1 h.
	RequestTTL time.Duration
	// Replaced reports whether another Redis may have taken over within the last minutes. Nil means
	// that it never does.
	Replaced func() bool
	// Now is the clock of [Memory]. [Redis] uses the clock of its server. Nil means time.Now.
	Now func() time.Time
}

func (o Options) withDefaults() Options {
	o.ClientCap = cmp.Or(o.ClientCap, 1000)
	o.ClientTTL = cmp.Or(o.ClientTTL, time.Hour)
	o.RecordTTL = cmp.Or(o.RecordTTL, 150*time.Minute)
	o.ChannelCap = cmp.Or(o.ChannelCap, 10_000)
	o.ChannelMaxBytes = cmp.Or(o.ChannelMaxBytes, 8<<20)
	o.ChannelTTL = cmp.Or(o.ChannelTTL, time.Hour)
	o.MetaTTL = cmp.Or(o.MetaTTL, 6*time.Hour)
	o.KeyTTL = cmp.Or(o.KeyTTL, 10*time.Minute)
	o.RequestCap = cmp.Or(o.RequestCap, 10_000)
	o.RequestBytes = cmp.Or(o.RequestBytes, 8<<20)
	o.RequestShare = cmp.Or(o.RequestShare, 100)
	o.RequestShareBytes = cmp.Or(o.RequestShareBytes, 1<<20)
	o.RequestTTL = cmp.Or(o.RequestTTL, time.Hour)
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
