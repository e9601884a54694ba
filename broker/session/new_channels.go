package session

import (
	"time"

	"switchboard/internal/wire"
	"switchboard/registry"
)

// heavy is how many messages one counts as that has the store read what others wrote.
const heavy = 10

// weight is how many messages a message counts as.
func weight(req wire.Request) int {
	if req.Type == wire.TypeHistory || req.Type == wire.TypePresence {
		return heavy
	}
	return 1
}

// charge counts the messages of an answer towards the bytes of the connection, which asked for
// them.
func (s *Session) charge(messages []wire.Stored) {
	n := 0
	for _, m := range messages {
		n += len(m.Data)
	}
	s.chargeBytes(n)
}

// chargeMembers does so for the clients of a presence page.
func (s *Session) chargeMembers(members []registry.Member) {
	n := 0
	for _, m := range members {
		n += len(m.Client) + len(m.User) + len(m.Info)
	}
	s.chargeBytes(n)
}

func (s *Session) chargeBytes(n int) {
	if n > 0 && s.state != closed && !s.m.bytes.None() {
		s.used().bytes.Take(s.m.bytes, n, s.m.since())
	}
}

// mayBring says how long it is until the client may bring a channel into being, 0 for now. It takes
// nothing: only the store knows whether a publish does.
func (s *Session) mayBring() (wait time.Duration) {
	if s.extra == nil || s.extra.pace == nil {
		return 0
	}
	bucket := s.extra.pace.channels
	return bucket.Take(s.m.channels, 1, s.m.since())
}

// brought counts a channel that the client brought into being.
func (s *Session) brought() {
	if !s.m.channels.None() {
		s.used().channels.Take(s.m.channels, 1, s.m.since())
	}
}

// tooManyNew refuses to bring a channel into being.
func (s *Session) tooManyNew(channel string) error {
	s.m.opts.Metrics.Refused("new_channels")
	return wire.Errorf(wire.RateLimited, "channel %s: more than %d new channels a minute (limits.new_channels); try again in %d ms",
		channel, s.m.opts.Limits.NewChannels, max(1, s.mayBring().Milliseconds()))
}
