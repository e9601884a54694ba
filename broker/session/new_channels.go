package session

import (
	"time"

	"switchboard/internal/wire"
)

// countNewChannel takes one channel from the rate of created channels.
func (s *Session) countNewChannel() {
	if r := &s.m.rates; !r.newChannels.None() {
		s.ensureRateUse().newChannels.Take(r.newChannels, 1, r.now())
	}
}

// newChannelError counts and returns the refusal of a message that would create one channel too
// many. wait is the time until the client may create a channel.
func newChannelError(o *Options, channel string, wait time.Duration) error {
	o.Metrics.Refused("new_channels")
	return wire.Errorf(wire.RateLimited, "channel %s: more than %d new channels a minute (limits.new_channels); try again in %d ms",
		channel, o.Limits.NewChannels, max(1, wait.Milliseconds()))
}
