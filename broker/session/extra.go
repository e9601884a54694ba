package session

import (
	"encoding/json"
	"slices"
	"time"

	"switchboard/broker/hub"
	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/broker/presence"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// listRead is the reading of a session's lists of subscriptions after a call of the backend. Only
// the session's loop uses it.
type listRead struct {
	running bool
	again   bool // they have changed while they were read
	failed  bool // the next tick tries again
	waiting []*listWait
}

// listWait is a call of the backend that waits until a session has applied its lists.
type listWait struct {
	refused []RefusedSub
	done    chan<- listApplied // with room for the result
}

// listApplied is the result of a listWait.
type listApplied struct {
	refused []RefusedSub
	gone    bool // the session has ended
}

// RefusedSub is a channel to which a client could not be subscribed for the backend.
type RefusedSub struct {
	Client  string         `json:"client"`
	Channel string         `json:"channel"`
	Code    wire.ErrorCode `json:"code"`
	Message string         `json:"message"`
}

// backendSubs are the subscriptions that the backend has made for a client: by the claim
// `subscribe` of its token, and by calls, which the store has in lists. The client may subscribe to
// these channels although the access rules do not allow it, so that it can resume them. Only the
// session's loop uses it.
type backendSubs struct {
	claim    claimedSubs
	lists    registry.Subscriptions
	channels []string // all of them; replaced and not changed, since permissions refer to it
	due      []dueSub // those that did not begin yet, in order
	retry    []dueSub // those that failed; the next tick makes them due
	adopted  []string // those to which the client has subscribed by itself on this connection
	left     []leftChannel
}

// waits returns whether the subscription to a channel did not begin yet.
func (b *backendSubs) waits(channel string) bool {
	of := func(d dueSub) bool { return d.channel == channel }
	return slices.ContainsFunc(b.due, of) || slices.ContainsFunc(b.retry, of)
}

// claimedSubs are the channels that a token names, and when it was issued, Unix ms.
type claimedSubs struct {
	channels []string
	issued   int64
}

// dueSub is a subscription of the backend that begins when the session is idle.
type dueSub struct {
	channel string
	after   *int64 // nil for now
}

// leftChannel is a channel from which the backend has unsubscribed the client.
type leftChannel struct {
	channel string
	told    bool // the client knows; otherwise it may still resume its subscription
}

// profile holds the info and the grants of a session's Identity, the subscriptions that the backend
// has made, and how much of the publish rates the session has used. A session without all of these
// has none. Only the session's loop uses it.
type profile struct {
	info      json.RawMessage
	grants    namespace.Grants
	publishes map[*namespace.Rule]limit.Bucket // of the namespaces that limit the publish rate
	backend   *backendSubs                     // nil for none
	reading   *listRead                        // nil for none
}

// empty returns whether a session needs no profile.
func (p *profile) empty() bool {
	return p.info == nil && p.grants.Empty() && p.publishes == nil && p.backend == nil && p.reading == nil
}

// rateUse is what one connection has used of the rates. An idle connection has none. A connection
// gets one when, for example, it sends more than one message in a second. It loses it when all
// buckets are full again. Only the session's loop uses it.
type rateUse struct {
	messages, bytes limit.Bucket
	refused         int // messages refused in a row; an accepted control frame subtracts one

	requests limit.Bucket
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

// extra is state that an idle session with one channel does not need.
type extra struct {
	moreSubs     []*hub.Subscription // to the channels after the first
	waiting      *waitingMessages    // nil for none
	profile      *profile            // nil for none
	rateUse      *rateUse            // nil for none
	backlogSince uint32              // the tick at which the socket was first found backed up, 0 if it is not
	replyBytes   int32               // bytes of replies written during the backlog
	watches      watchList
}

// waitingMessages are the messages of a client that are handled later, in their order. Only the
// session's loop uses it.
type waitingMessages struct {
	list  []waitingMessage
	bytes int // the sum of the sizes
}

// onlyAcks returns whether nothing but acknowledgements waits.
func (w *waitingMessages) onlyAcks() bool {
	return !slices.ContainsFunc(w.list, func(m waitingMessage) bool { return m.req.Type != wire.TypeAck })
}

func (w *waitingMessages) dropPings() {
	w.list = slices.DeleteFunc(w.list, func(m waitingMessage) bool {
		ping := m.req.Type == wire.TypePing
		if ping {
			w.bytes -= m.size
		}
		return ping
	})
}

// pop removes the first message and returns it. There must be one.
func (w *waitingMessages) pop() wire.Request {
	m := w.list[0]
	w.list, w.bytes = w.list[1:], w.bytes-m.size
	return m.req
}

type waitingMessage struct {
	req  wire.Request
	size int // as received
}

// watch is one channel, or one user, whose joins and leaves the session receives. Only the
// session's loop uses it.
type watch struct {
	channel string // of a user, its system channel
	sub     *presence.Subscription
}

// watchList holds the watches of a session. Only the session's loop uses it.
type watchList []watch

// index returns the index of the watch of a channel, or -1.
func (l watchList) index(channel string) int {
	return slices.IndexFunc(l, func(w watch) bool { return w.channel == channel })
}
