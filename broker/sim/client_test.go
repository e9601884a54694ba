package sim

import (
	"encoding/json"
	"fmt"
	"slices"

	"switchboard/broker/loop"
	"switchboard/broker/transport"
	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// client is a simulated device. It resumes and acknowledges. It may have several connections; only
// the newest one sets its positions.
type client struct {
	w             *world
	name, user    string // its id and its user
	auto          bool   // "ack":"auto"
	connectedOnce bool   // it received "connected" at least once

	position map[string]int64   // by channel: the `after` for the next subscription
	seen     map[int64]struct{} // ids received from its own queue
	lost     map[int64]struct{} // ids of its own queue that a gap covered
	received int64              // the highest id in seen
	ackedTo  int64              // the highest id that it acknowledged

	held map[string]*held // by channel: the state at the position
}

// connState is the state of a connection, as the client sees it.
type connState uint8

const (
	dialing connState = iota // connect was sent
	open
	ended // closed by either side
)

// socketState is the state of a connection's socket.
type socketState uint8

const (
	flowing socketState = iota
	filling             // accepts one more write
	backlogged
)

// conn is a connection: the broker's socket and the client that reads it.
type conn struct {
	corks   int          // calls of Cork less those of Uncork
	held    []wire.Event // written while corked
	client  *client
	node    *node
	loop    *loop.Loop
	number  int
	session transport.Receiver // nil after the broker has noticed the end

	state     connState
	confirmed bool             // the client received "connected"
	bound     bool             // the store has bound it
	reason    wire.CloseReason // why the broker closed the connection
	socket    socketState
	unread    []wire.Event

	after     *int64                   // for $all, from the connect request
	subs      map[string]*subscription // the client's subscriptions, as confirmed by the broker
	watches   map[string]*userWatch    // by user: the users whose presence the client watches
	resuming  bool                     // the session learns that the socket is writable again
	requests  map[int64]request        // by ref
	refs      int64
	inbox     int64  // the last id that arrived from the client's queue
	expectGap *int64 // a gap on $all after this position must follow `connected`
}

type request struct {
	kind, channel string
	after         *int64
	state         *wire.Selector // of a subscribe
	held          bool
	presence      bool
	change        *wire.Change // of a publish
	data          []byte
	reported      int64 // of a subscribe: the last report of an erasure that the broker has sent
	absencesEnded int   // of a subscribe to a user: absences.ended of the broker
}

// requestOf returns what the client remembers of a request.
func requestOf(r wire.Request) request {
	req := request{kind: r.Type, channel: r.Channel, after: r.After, change: r.Change, data: r.Data, presence: r.Presence}
	if r.StateRequest != nil {
		req.state, req.held = r.State, r.Held
	}
	return req
}

// subscription is a subscription as the client sees it.
type subscription struct {
	cursor   int64 // id of the last message or gap that the client received
	filter   state.Filter
	follower *state.Follower // nil without the state
	roster   *roster         // nil without presence
	reported int64           // the last report of an erasure that the broker had sent before the subscribe
}

func (c *conn) String() string {
	return fmt.Sprintf("%s#%d@%s", c.client.name, c.number, c.node.machine)
}

// mayDial reports whether the client may connect to n without making the run depend on the
// scheduler. Two connections of one client that wait for the same answer on one broker would
// continue in the same step and compete for the per-client lock. A connection that holds the lock
// already does not compete.
func (cl *client) mayDial(n *node) bool {
	connecting := 0
	for _, c := range cl.w.conns {
		if c.client == cl && c.node == n && !c.confirmed && !c.bound && c.reason == "" {
			connecting++
		}
	}
	locked := slices.ContainsFunc(cl.w.parked(), func(c *call) bool {
		return c.node == n && c.function == "bind" && c.subject.client == cl.name
	})
	return connecting == 0 || connecting == 1 && locked
}

// dial connects to n.
func (cl *client) dial(n *node) *conn {
	w := cl.w
	w.dialed++
	c := &conn{
		client: cl, node: n, loop: n.loops[w.rng.IntN(len(n.loops))], number: w.dialed,
		subs: map[string]*subscription{}, watches: map[string]*userWatch{}, requests: map[int64]request{},
	}
	w.conns = append(w.conns, c)
	for _, kept := range cl.held { // the former connection may change its own
		kept.follower = cloneFollower(kept.follower)
	}
	if at, ok := cl.position[wire.AllChannel]; ok && w.rng.IntN(4) > 0 {
		c.after = &at
	}
	ack := "client"
	if cl.auto {
		ack = "auto"
	}
	w.log("%v dials, after %s", c, describe(c.after))
	c.session = n.sessions.Accept(c.loop, c, nil)
	c.send(wire.Request{
		Type: wire.TypeConnect, Client: wire.ClientPart(cl.name), User: cl.user, Secret: cl.secret(), After: c.after, Ack: ack,
	})
	if cl.received > cl.ackedTo && !cl.auto && w.oneIn(2) { // messages of an earlier connection
		c.ack(cl.received)
	}
	return c
}

// secret returns the secret by which a client without a user keeps its id.
func (cl *client) secret() string {
	if cl.user != "" {
		return ""
	}
	return "the secret of " + cl.name
}

// send passes a request to the session.
func (c *conn) send(r wire.Request) {
	c.refs++
	r.Ref = wire.RefOf(c.refs)
	req := requestOf(r)
	req.reported = c.node.reports[r.Channel]
	if user, ok := userOf(r.Channel); ok {
		req.absencesEnded = c.node.absencesOf(user).ended
	}
	c.requests[c.refs] = req
	c.session.Receive(r, len(toJSON(r)))
	c.client.w.settle()
}

// maySubscribe reports whether the client may subscribe without making the run depend on the
// scheduler. Two subscribers on one loop that wait for the same binding would continue in the same
// step, in an undefined order.
func (c *conn) maySubscribe(channel string) bool {
	return !slices.ContainsFunc(c.client.w.conns, func(d *conn) bool {
		return d.loop == c.loop && d.state == open && d.hasRequest(channel)
	})
}

func (c *conn) subscribe(channel string, after *int64) { c.subscribeAnd(channel, after, false) }

// subscribeAnd subscribes to a channel, and may watch its presence.
func (c *conn) subscribeAnd(channel string, after *int64, watches bool) {
	c.client.w.log("%v subscribes to %s after %s, watches %v", c, channel, describe(after), watches)
	c.send(wire.Request{Type: wire.TypeSubscribe, Channel: channel, After: after, Presence: watches})
}

func (c *conn) unsubscribe(channel string) {
	c.client.w.log("%v unsubscribes from %s", c, channel)
	c.send(wire.Request{Type: wire.TypeUnsubscribe, Channel: channel})
}

// ack acknowledges the messages up to id.
func (c *conn) ack(id int64) {
	c.client.w.log("%v acknowledges %d", c, id)
	c.client.ackedTo = max(c.client.ackedTo, id)
	c.send(wire.Request{Type: wire.TypeAck, ID: id})
}

// hasRequest reports whether a request for the channel is not answered yet.
func (c *conn) hasRequest(channel string) bool {
	for _, r := range c.requests {
		if r.channel == channel {
			return true
		}
	}
	return false
}

// leave ends the connection on the client's side. The broker notices it only in noticeEnd.
func (c *conn) leave() {
	c.client.w.log("the client of %v leaves", c)
	c.state, c.unread = ended, nil
}

// processEnded ends the connection because the broker's process ended.
func (c *conn) processEnded() {
	c.state, c.unread, c.session = ended, nil, nil
}

// noticeEnd makes the broker notice that the client is gone.
func (c *conn) noticeEnd() {
	c.client.w.log("%v: the broker notices the end", c)
	session := c.session
	c.session = nil
	session.Closed()
	c.client.w.settle()
}

// unblock makes the socket writable again.
func (c *conn) unblock() {
	c.client.w.log("%v is writable", c)
	c.socket = flowing
	events := c.unread
	c.unread = nil
	for _, e := range events {
		c.receive(e)
	}
	if c.session != nil {
		c.resuming = true
		c.session.Writable()
		c.resuming = false
	}
	c.client.w.settle()
}

// toJSON encodes an event or a request.
func toJSON(message any) []byte {
	text, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	return text
}

// newest reports whether this is the client's newest connection.
func (c *conn) newest() bool {
	for _, d := range slices.Backward(c.client.w.conns) {
		if d.client == c.client {
			return d == c
		}
	}
	return false
}

// setPosition sets the client's position in a channel.
func (c *conn) setPosition(channel string, id int64) {
	if c.newest() {
		c.client.position[channel] = id
	}
}

// receive processes an event on the client.
func (c *conn) receive(e wire.Event) {
	w := c.client.w
	w.recordEvent(c, e)
	if c.state == ended { // written to a socket that the client does not read: with "auto" it counts as received
		if c.client.auto && e.Channel == "" && (e.Type == wire.TypeMessage || e.Type == wire.TypeGap) {
			if e.Type == wire.TypeGap {
				c.inboxGap(*e.After, *e.ID)
			} else {
				c.inboxMessage(*e.ID, e.Data)
			}
		}
		return
	}
	var req request
	if e.Ref.Set {
		req = c.requests[e.Ref.Value]
		delete(c.requests, e.Ref.Value)
	}
	if c.expectGap != nil && e.Type != wire.TypeGap {
		w.violate("%v resumed $all after %d, begins elsewhere and received no gap", c, *c.expectGap)
	}
	user, isUser := userOf(e.Channel)
	switch e.Type {
	case wire.TypeConnected:
		c.state, c.confirmed, c.client.connectedOnce = open, true, true
		if e.Client != c.client.name || e.User != c.client.user || e.Secret != c.client.secret() {
			w.violate("%v is connected as %s of %s with secret %s", c, e.Client, e.User, e.Secret)
		}
		c.subscribed(wire.AllChannel, *e.ID, c.after, nil)
	case wire.TypeSubscribed:
		if isUser {
			c.userWatched(user, req)
			break
		}
		if c.subs[e.Channel] != nil && (req.state != nil || req.presence) {
			c.passHidden(e.Channel, *e.ID)
		} else {
			c.subscribed(e.Channel, *e.ID, req.after, e.Recovered)
			c.subs[e.Channel].reported = req.reported
		}
		if req.state != nil {
			c.beginState(e.Channel, req, e.Recovered)
		}
		if req.presence {
			c.subs[e.Channel].beginRoster()
		}
	case wire.TypeState:
		c.page(e)
	case wire.TypePublished:
		c.published(req, e)
	case wire.TypeUnsubscribed:
		delete(c.subs, e.Channel)
		delete(c.watches, user)
	case wire.TypeMessage:
		c.message(e)
	case wire.TypeGap:
		c.gap(e.Channel, *e.After, *e.ID)
	case wire.TypeError:
		w.model.checkError(c, req, e)
	case wire.TypeJoin, wire.TypeLeave, wire.TypePresence:
		if isUser {
			c.userChanged(user, e)
			break
		}
		c.presence(e)
	case wire.TypePong:
	default:
		w.violate("%v received the unexpected event %s", c, toJSON(e))
	}
}

// describe formats an optional id.
func describe(n *int64) string {
	if n == nil {
		return "none"
	}
	return fmt.Sprint(*n)
}
