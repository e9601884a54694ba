package session

import "time"

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
	return rateLimited(wait, "channel %s: more than %d new channels a minute (limits.new_channels)", channel, o.Limits.NewChannels)
}
