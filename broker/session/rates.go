package session

import (
	"fmt"
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

// rateUse is what one connection has used of the rates. An idle connection has none. A connection
// gets one when, for example, it sends more than one message in a second. It loses it when all
// buckets are full again. Only the session's loop uses it.
type rateUse struct {
	messages, bytes limit.Bucket
	refused         int // messages refused in a row; an accepted control frame subtracts one

	requests limit.Bucket
}

// rateUse returns the session's rateUse, or nil.
func (s *Session) rateUse() *rateUse {
	if s.extra == nil {
		return nil
	}
	return s.extra.rateUse
}

// ensureRateUse returns the session's rateUse. It creates one if there is none.
func (s *Session) ensureRateUse() *rateUse {
	e := s.ensureExtra()
	if e.rateUse == nil {
		e.rateUse = new(rateUse)
	}
	return e.rateUse
}

// dropFullBuckets drops the session's rateUse if all its buckets are full again.
func (s *Session) dropFullBuckets() {
	if u := s.rateUse(); u != nil && u.full(s.m.rates.now()) {
		s.extra.rateUse = nil
		s.dropEmptyExtra()
	}
}

// full returns whether all buckets are as full as new ones.
func (u *rateUse) full(now time.Duration) bool {
	return u.messages.Full(now) && u.bytes.Full(now) && u.requests.Full(now)
}

// takeBytes takes size bytes, or returns how long it takes until they are available.
func (u *rateUse) takeBytes(rate limit.Rate, size int, now time.Duration) (wait time.Duration) {
	if size == 0 {
		return 0
	}
	return u.bytes.Take(rate, size, now)
}

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
