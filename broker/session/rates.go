package session

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"switchboard/broker/limit"
	"switchboard/internal/wire"
)

// rates holds the configured rate limits of each connection and the clock of their buckets. The
// Manager has one. It does not change after New, so all loops use it without a lock.
type rates struct {
	messages, bytes limit.Rate
	requests        limit.Rate // of requests to backend workers
	began           time.Time  // when the clock began
}

func newRates(o Options) rates {
	return rates{
		messages: limit.PerSecond(o.Limits.MessageRate),
		bytes:    limit.PerSecond(o.Limits.ByteRate),
		requests: limit.PerSecond(o.Requests.Rate),
		began:    time.Now(),
	}
}

// rateLimited returns the refusal of a message that exceeds a rate. wait is the time after which it
// may succeed.
func rateLimited(wait time.Duration, format string, args ...any) *wire.Error {
	err := wire.Errorf(wire.RateLimited, format, args...)
	err.Message += fmt.Sprintf("; try again in %d ms", max(1, wait.Milliseconds()))
	err.After = wait
	return err
}

// now returns the time since New, which all buckets use.
func (r *rates) now() time.Duration { return time.Since(r.began) }

// noTrafficLimit returns whether neither messages nor bytes are limited.
func (r *rates) noTrafficLimit() bool { return r.messages.None() && r.bytes.None() }

// heavyWeight is the weight of a message for which the store reads many records.
const heavyWeight = 10

// weight returns how many messages a message counts as. Each change of a field counts, and each
// condition: the store reads a field for either.
func weight(req wire.Request) int {
	switch {
	case req.Type == wire.TypeHistory || req.Type == wire.TypePresence:
		return heavyWeight
	case req.Change != nil:
		return max(1, len(req.Set)+len(req.Del)+len(req.Add)+len(req.Touch)+len(req.If))
	}
	return 1
}

// kib returns a size in KiB, rounded up.
func kib(bytes int) int { return (bytes + 1<<10 - 1) >> 10 }

// readError returns the refusal of a message or a call for which the store would be read. wait is
// the time until it may be read.
func readError(bytes int, wait time.Duration) error {
	return rateLimited(wait, "more than %d bytes a second read for one user or address (limits.user_read)", bytes)
}

// newSenders returns the rates of what each user, or each address, stores and makes the store read.
func newSenders(o Options) *limit.Senders {
	rates := limit.SenderRates{Bytes: limit.PerHour(o.Limits.UserStored), Read: limit.PerSecond(o.Limits.UserRead)}
	if n := o.Limits.NewChannels; n > 0 {
		rates.Channels = limit.New(float64(n)/60, max(n, o.Limits.Channels))
	}
	return limit.NewSenders(rates, o.Ledger)
}

// sender returns the sender whose rates and shares the client's messages count towards. It runs on
// the loop.
func (s *Session) sender() limit.Sender {
	if s.m.senders == nil && s.m.asks == nil {
		return limit.Sender{}
	}
	if user := s.user(); user != "" {
		return limit.SenderOf(user, netip.AddrPort{}, nil)
	}
	return limit.SenderOf("", s.conn.RemoteAddrPort(), s.m.opts.Limits.Proxies)
}

// Stored returns how much a user has used of what it may store.
func (m *Manager) Stored(ctx context.Context, user string) (limit.StoredUse, error) {
	return m.senders.Stored(ctx, limit.SenderOf(user, netip.AddrPort{}, nil))
}
