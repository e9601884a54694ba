package session

import (
	"context"
	"time"

	"switchboard/internal/wire"
)

// maxAsked is the most requests of a connection that wait for the answer of the backend's URL.
const maxAsked = 16

// askAgain is the time after which a sender at its share may send another request. An answer may
// come earlier or later.
const askAgain = time.Second

// ask sends a request to the backend's URL. Further messages do not wait for the answer: the
// backend may be slow, and a client sends other messages meanwhile.
func (s *Session) ask(ref wire.Ref, request []byte, since time.Time) {
	asked := s.shard.asked
	if asked[s] >= maxAsked {
		s.m.opts.Metrics.Refused("requests")
		s.refuse(ref, rateLimited(askAgain, "%d requests of the connection wait for the backend", maxAsked))
		return
	}
	sender := s.sender()
	if !s.m.asks.Take(sender) {
		s.m.opts.Metrics.Refused("request_share")
		s.refuse(ref, rateLimited(askAgain, "%d requests of this user or address wait for the backend (requests.share)", s.m.opts.Requests.Share))
		return
	}
	asked[s]++
	s.m.opts.Requests.Pool.Go(func() {
		data, err := s.m.opts.Requests.Ask(context.Background(), request, since) // Ask has its own timeout
		s.m.asks.Give(sender)
		s.shard.loop.Post(func() {
			if asked[s]--; asked[s] == 0 {
				delete(asked, s)
			}
			switch {
			case s.state == closed:
			case err != nil:
				s.reply(s.errorEvent(ref, err))
			default:
				s.reply(wire.Event{Type: wire.TypeReply, Ref: ref, Data: data})
			}
		})
	})
}
