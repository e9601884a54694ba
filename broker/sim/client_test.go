package sim

import (
	"encoding/json"
	"fmt"
	"slices"

	"switchboard/broker/dialect"
	"switchboard/broker/loop"
	"switchboard/broker/transport"
	"switchboard/internal/dialecttest"
	"switchboard/internal/wire"
)

// client is a device: it resumes where it was, acknowledges, and may hold several connections at a
// time, while it has given up on the older ones.
type client struct {
	w          *world
	name, user string // its id, and whose it is
	auto       bool   // "ack":"auto"
	known      bool   // it was told "connected" once

	position map[string]int64   // by channel: what it gives as `after`
	seen     map[int64]struct{} // of its own queue
	told     map[int64]struct{} // declared lost, in its own queue
	received int64              // the highest of them
	ackedTo  int64              // the highest id that it acknowledged
}

// life is how far a connection has come.
type life uint8

const (
	dialing life = iota // connect was sent
	open
	ended // by either side, as the client sees it
)

// jam is what a socket takes.
type jam uint8

const (
	flowing  jam = iota
	stopping     // the next write is the first that stays
	jammed
)

// conn is a connection, from the socket of the broker to the client that reads it.
type conn struct {
	corks int          // calls of Cork less those of Uncork
	held  []wire.Event // written while corked

	client  *client
	node    *node
	loop    *loop.Loop
	number  int
	session transport.Receiver // nil when the broker knows of the end

	life    life
	welcome bool             // it was told "connected"
	bound   bool             // the store has bound it
	reason  wire.CloseReason // why the broker closed
	jam     jam
	unread  []wire.Event

	after   *int64                 // on $all, of connect
	subs    map[string]*subscriber // what the client was told it has
	asked   map[int64]request      // by ref
	refs    int64
	inbox   int64  // the last id of the client's queue that came
	pending *int64 // the gap on $all that has to follow `connected` starts here
}

type request struct {
	kind, channel string
	after         *int64
}

// subscriber is one subscription as the client sees it.
type subscriber struct{ cursor int64 }

func (c *conn) String() string { return fmt.Sprintf("%s#%d@%s", c.client.name, c.number, c.node.slot) }

// mayDial rules out what would make a run depend on the scheduler: two connections of one client that
// wait on one broker for the same answer, go on in the same step and meet at the client's turn. One that has
// its turn already is no such case.
func (cl *client) mayDial(n *node) bool {
	under := 0
	for _, c := range cl.w.conns {
		if c.client == cl && c.node == n && !c.welcome && !c.bound && c.reason == "" {
			under++
		}
	}
	inTurn := slices.ContainsFunc(cl.w.parked(), func(c *call) bool {
		return c.node == n && c.from == "bind" && c.about.client == cl.name
	})
	return under == 0 || under == 1 && inTurn
}

// dial connects to n.
func (cl *client) dial(n *node) *conn {
	w := cl.w
	w.dialed++
	c := &conn{
		client: cl, node: n, loop: n.loops[w.rng.IntN(len(n.loops))], number: w.dialed,
		subs: map[string]*subscriber{}, asked: map[int64]request{},
	}
	w.conns = append(w.conns, c)
	if at, ok := cl.position[wire.AllChannel]; ok && w.rng.IntN(4) > 0 {
		c.after = &at
	}
	ack := "client"
	if cl.auto {
		ack = "auto"
	}
	w.log("%v dials, after %s", c, number(c.after))
	c.session = n.sessions.Accept(c.loop, c, nil)
	c.say(wire.Request{
		Type: wire.TypeConnect, Client: wire.ClientPart(cl.name), User: cl.user, Secret: cl.secret(), After: c.after, Ack: ack,
	})
	if cl.received > cl.ackedTo && !cl.auto && w.one(2) { // what came on an earlier connection
		c.ack(cl.received)
	}
	return c
}

// secret is by what a client without a user gets its id again.
func (cl *client) secret() string {
	if cl.user != "" {
		return ""
	}
	return "the secret of " + cl.name
}

// say hands a message to the session.
func (c *conn) say(r wire.Request) {
	c.refs++
	r.Ref = wire.RefOf(c.refs)
	c.asked[c.refs] = request{r.Type, r.Channel, r.After}
	c.session.Receive(r, len(shown(r)))
	c.client.w.settle()
}

// maySubscribe rules out what would make a run depend on the scheduler, as mayDial does: who waits until another
// has bound the channel goes on together with him, and which of the two tells their loop first would be open.
func (c *conn) maySubscribe(channel string) bool {
	return !slices.ContainsFunc(c.client.w.conns, func(d *conn) bool {
		return d.loop == c.loop && d.life == open && d.asking(channel)
	})
}

func (c *conn) subscribe(channel string, after *int64) {
	c.client.w.log("%v subscribes to %s after %s", c, channel, number(after))
	c.say(wire.Request{Type: wire.TypeSubscribe, Channel: channel, After: after})
}

func (c *conn) unsubscribe(channel string) {
	c.client.w.log("%v unsubscribes from %s", c, channel)
	c.say(wire.Request{Type: wire.TypeUnsubscribe, Channel: channel})
}

// ack acknowledges what came up to id.
func (c *conn) ack(id int64) {
	c.client.w.log("%v acknowledges %d", c, id)
	c.client.ackedTo = max(c.client.ackedTo, id)
	c.say(wire.Request{Type: wire.TypeAck, ID: id})
}

// asking says whether an answer about the channel is outstanding.
func (c *conn) asking(channel string) bool {
	for _, r := range c.asked {
		if r.channel == channel {
			return true
		}
	}
	return false
}

// leave ends the connection from the client's side. When it vanishes, the broker does not notice
// until notice is called.
func (c *conn) leave() {
	c.client.w.log("%v is left by its client", c)
	c.life, c.unread = ended, nil
}

// lost is the end of the broker's process.
func (c *conn) lost() {
	c.life, c.unread, c.session = ended, nil, nil
}

// notice tells the broker that the client is gone.
func (c *conn) notice() {
	c.client.w.log("%v: the broker notices the end", c)
	session := c.session
	c.session = nil
	session.Closed()
	c.client.w.settle()
}

// unjam lets the socket flow again.
func (c *conn) unjam() {
	c.client.w.log("%v is writable", c)
	c.jam = flowing
	events := c.unread
	c.unread = nil
	for _, e := range events {
		c.receive(e)
	}
	if c.session != nil {
		c.session.Writable()
	}
	c.client.w.settle()
}

// Write is transport.Conn's.
func (c *conn) Write(b *dialect.Batch) {
	events := make([]wire.Event, len(b.Messages))
	for i, m := range b.Messages {
		events[i] = dialecttest.EventOf(m)
	}
	c.write(events...)
}

// Send is transport.Conn's.
func (c *conn) Send(e wire.Event) { c.write(e) }

// write is one write to the socket, or part of one while the connection is corked.
func (c *conn) write(events ...wire.Event) {
	if c.corks > 0 {
		c.held = append(c.held, events...)
		return
	}
	for _, e := range events {
		switch {
		case c.session == nil && c.life == ended: // the broker has closed it itself
		case c.jam == flowing:
			c.receive(e)
		case c.jam == jammed && e.Type == wire.TypeMessage:
			c.client.w.violate("%v is backed up, and is sent %s", c, shown(e))
		default:
			c.unread = append(c.unread, e)
		}
	}
	if len(events) > 0 && c.jam == stopping {
		c.jam = jammed
	}
}

// Cork is transport.Conn's.
func (c *conn) Cork() { c.corks++ }

// Flush is transport.Conn's.
func (c *conn) Flush() {
	corks, held := c.corks, c.held
	c.corks, c.held = 0, nil
	c.write(held...)
	c.corks = corks
}

// Uncork is transport.Conn's.
func (c *conn) Uncork() {
	if c.corks--; c.corks == 0 {
		c.Flush()
	}
}

// Backlogged is transport.Conn's.
func (c *conn) Backlogged() bool { return c.jam == jammed }

// Liveness is transport.Conn's.
func (c *conn) Liveness() dialect.Liveness { return dialect.Liveness{} }

// shown is an event or a request as JSON.
func shown(message any) []byte {
	text, err := json.Marshal(message)
	if err != nil {
		panic(err)
	}
	return text
}

// Ping is transport.Conn's.
func (c *conn) Ping() {}

// RemoteAddr is transport.Conn's.
func (c *conn) RemoteAddr() string { return "" }

// Close is transport.Conn's.
func (c *conn) Close(reason wire.CloseReason, detail string, _ int64) {
	if c.node.dead { // the process is gone, only its ghost here says something
		return
	}
	c.Flush()
	c.client.w.log("%v is closed: %s %s", c, reason, detail)
	if bound := c.client.w.model.bound[c.client.name]; reason == wire.CloseSuperseded && len(bound) == 1 && bound[0] == c {
		c.client.w.violate("%v is closed as superseded, and nobody else was bound since", c)
	}
	c.reason, c.life, c.unread, c.session = reason, ended, nil, nil
}

// newest says whether this is the client's latest connection.
func (c *conn) newest() bool {
	for _, d := range slices.Backward(c.client.w.conns) {
		if d.client == c.client {
			return d == c
		}
	}
	return false
}

// moved notes the client's position in a channel.
func (c *conn) moved(channel string, id int64) {
	if c.newest() {
		c.client.position[channel] = id
	}
}

// receive is what the client does with an event.
func (c *conn) receive(e wire.Event) {
	w := c.client.w
	w.heard(c, e)
	if c.life == ended { // written into a socket that nobody reads: for "auto" that counts
		if c.client.auto && e.Channel == "" && (e.Type == wire.TypeMessage || e.Type == wire.TypeGap) {
			if e.Type == wire.TypeGap {
				c.inboxGap(*e.After, *e.ID)
			} else {
				c.inboxMessage(*e.ID, e.Data)
			}
		}
		return
	}
	var asked request
	if e.Ref.Set {
		asked = c.asked[e.Ref.Value]
		delete(c.asked, e.Ref.Value)
	}
	if c.pending != nil && e.Type != wire.TypeGap {
		w.violate("%v resumed $all after %d, is at another place and was told no gap", c, *c.pending)
	}
	switch e.Type {
	case wire.TypeConnected:
		c.life, c.welcome, c.client.known = open, true, true
		if e.Client != c.client.name || e.User != c.client.user || e.Secret != c.client.secret() {
			w.violate("%v is told that it is %s of %s by secret %s", c, e.Client, e.User, e.Secret)
		}
		c.begin(wire.AllChannel, *e.ID, c.after, nil)
	case wire.TypeSubscribed:
		c.begin(e.Channel, *e.ID, asked.after, e.Recovered)
	case wire.TypeUnsubscribed:
		delete(c.subs, e.Channel)
	case wire.TypeMessage:
		c.message(e.Channel, *e.ID, e.Data)
	case wire.TypeGap:
		c.gap(e.Channel, *e.After, *e.ID)
	case wire.TypeError:
		w.model.refused(c, asked, e)
	case wire.TypePong:
	default:
		w.violate("%v is sent %s", c, shown(e))
	}
}

func number(n *int64) string {
	if n == nil {
		return "nothing"
	}
	return fmt.Sprint(*n)
}
