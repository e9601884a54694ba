package session

import (
	"time"

	"switchboard/internal/wire"
)

// waitForNewChannel returns how long it takes until the client may create another channel. It takes
// nothing from the rate: only the store knows whether a publish creates a channel.
func (s *Session) waitForNewChannel() time.Duration {
	if s.extra == nil || s.extra.rateUse == nil {
		return 0
	}
	bucket := s.extra.rateUse.channels // a copy
	return bucket.Take(s.m.rates.channels, 1, s.m.bucketClock())
}

// countNewChannel takes one channel from the rate of created channels.
func (s *Session) countNewChannel() {
	if !s.m.rates.channels.None() {
		s.ensureRateUse().channels.Take(s.m.rates.channels, 1, s.m.bucketClock())
	}
}

// newChannelError returns the refusal of a message that would create one channel too many.
func (s *Session) newChannelError(channel string) error {
	s.m.opts.Metrics.Refused("new_channels")
	return wire.Errorf(wire.RateLimited, "channel %s: more than %d new channels a minute (limits.new_channels); try again in %d ms",
		channel, s.m.opts.Limits.NewChannels, max(1, s.waitForNewChannel().Milliseconds()))
}
