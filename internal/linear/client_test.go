package linear

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// store changes and reads states. It is a queue, or it calls brokers.
type store interface {
	AppendChannel(ctx context.Context, push queue.ChannelPush) (queue.Appended, error)
	ReadStates(ctx context.Context, reads []queue.StateRead) []queue.Outcome[queue.StatePage]
}

// localStore is a queue.
type localStore interface {
	store
	StepStates(ctx context.Context, steps []queue.StateStep) []queue.Outcome[queue.Appended]
	ConfirmChannel(ctx context.Context, channel string, id int64) (*queue.Marker, error)
}

const channel = "room:1"

// seatMax is the limit of the group seat/.
const seatMax = 3

var (
	fieldNames = []string{"turn", "turn", "count", "count", "seat/1", "seat/2", "seat/3", "seat/4", "seat/5", "doc", "$max/seat/"}
	writers    = []string{state.UserHolder("amy"), state.UserHolder("bob"), state.UserHolder("cat"), state.BackendHolder}
)

// workload is what the clients of one run do.
type workload struct {
	seed    uint64
	clients int
	calls   int // of each client
	lease   time.Duration
	owners  bool          // clients own fields, and fields have parents
	durable bool          // some updates are durable
	abandon time.Duration // calls are sometimes abandoned within this time; 0 for never
	ended   func() bool   // ends the clients early; may be nil

	state.Limits // of most updates
}

// run runs the clients over the stores: each client uses one of them.
func (w workload) run(ctx context.Context, h *history, stores ...store) {
	var clients sync.WaitGroup
	for i := range w.clients {
		c := &client{
			workload: w, history: h, Rand: rand.New(rand.NewPCG(w.seed, uint64(i))), ctx: ctx, index: i,
			store: stores[i%len(stores)], writer: writers[i%len(writers)], ids: map[string]int64{},
			conn: state.Connection{Client: fmt.Sprint("client", i), Generation: 1, Server: fmt.Sprint("s", i%3)},
		}
		c.local, _ = c.store.(localStore)
		c.remote, _ = c.store.(remoteStore)
		clients.Go(func() {
			for n := 0; n < w.calls && (w.ended == nil || !w.ended()); n++ {
				c.step(n)
			}
		})
	}
	clients.Wait()
}

// client makes one call after the other.
type client struct {
	workload
	*history
	*rand.Rand
	ctx    context.Context
	index  int
	store  store
	local  localStore  // store, if it is a queue
	remote remoteStore // store, if it calls brokers
	writer string
	conn   state.Connection
	ids    map[string]int64 // by field: the id that the client has seen last
	seen   []string         // the fields of the last page
	acked  int64            // the id of the last update that was acknowledged
}

func pick[T any](c *client, from ...T) T { return from[c.IntN(len(from))] }

// oneIn returns true once in n times.
func (c *client) oneIn(n int) bool { return c.IntN(n) == 0 }

// step makes the nth call.
func (c *client) step(n int) {
	number := int64(n*c.clients + c.index + 1)
	switch x := c.IntN(20); {
	case x < 5:
		c.read()
	case x < 6 && c.remote != nil:
		if err := c.remote.reconnect(c.ctx); err != nil {
			c.failed(err)
		}
	case x < 6:
		c.sweep()
	case x < 7:
		push := queue.ChannelPush{Channel: channel, Data: fmt.Append(nil, number)}
		c.push(&call{client: c.index, kind: note, number: number, push: push})
	case x < 9 && c.owners:
		c.stepOwner()
	default:
		c.update(number)
	}
}

// limited returns a context that sometimes ends during the call.
func (c *client) limited() (context.Context, context.CancelFunc) {
	if c.abandon == 0 || !c.oneIn(8) {
		return context.WithCancel(c.ctx)
	}
	return context.WithTimeout(c.ctx, time.Duration(c.Int64N(int64(c.abandon))))
}

// push makes a call that appends, and reports whether it was answered.
func (c *client) push(p *call) bool {
	answered := c.append(func(push queue.ChannelPush) (queue.Appended, error) {
		ctx, cancel := c.limited()
		defer cancel()
		return c.store.AppendChannel(ctx, push)
	}, p)
	if !answered {
		c.awaitStore()
	}
	return answered
}

// awaitStore waits until the store answers. If another Redis may have taken over by then, it
// confirms the last update.
func (c *client) awaitStore() {
	_ = await.Success(c.ctx, func() error {
		return c.store.ReadStates(c.ctx, []queue.StateRead{{Channel: channel, Limit: 1}})[0].Err
	})
	if c.durable {
		c.confirm()
	}
}

// update makes a random update. If it has an idempotency key, it is repeated until it is answered,
// and sometimes once more.
func (c *client) update(number int64) {
	u := &state.Update{
		Data: fmt.Append(nil, number), Writer: c.writer, Client: c.conn.Client, Generation: c.conn.Generation, Server: c.conn.Server, Limits: c.Limits,
	}
	if c.oneIn(4) { // as if its server had other settings
		u.Limits = state.Limits{}
	}
	for _, name := range c.names(c.IntN(3) * c.IntN(2)) {
		u.If = append(u.If, c.condition(name))
	}
	for _, name := range c.names(1 + c.IntN(3)) {
		u.Ops = append(u.Ops, c.op(name))
	}
	if c.remote != nil {
		ttl := time.Duration(c.IntN(2)) * time.Duration(1+c.Int64N(c.lease.Milliseconds())) * time.Millisecond
		c.remote.identity().conform(u, ttl)
	}
	push := queue.ChannelPush{Channel: channel, Update: u, Durable: c.durable && c.oneIn(3)}
	tries := 1
	if c.oneIn(3) {
		push.Key, tries = fmt.Sprint("k", number), 1+c.IntN(2)
	}
	for ; tries > 0; tries-- {
		p := &call{client: c.index, kind: update, number: number, push: push}
		answered := c.push(p)
		for push.Key != "" && !answered && c.ctx.Err() == nil {
			p = &call{client: c.index, kind: update, number: number, push: push}
			answered = c.push(p)
		}
		c.learn(p)
	}
}

// learn remembers the ids that an answer shows.
func (c *client) learn(p *call) {
	switch {
	case !p.answered():
	case p.refusal != nil:
		if p.refusal.Err.Code == wire.Unavailable { // the connection has ended
			c.reconnect()
		}
		for name, f := range p.refusal.Fields {
			if f != nil {
				c.ids[name] = f.ID
			}
		}
	default:
		c.acked = p.appended.ID
		for _, op := range p.push.Update.Ops {
			if op.Kind == state.Set || op.Kind == state.Add {
				c.ids[op.Field] = p.appended.ID
			}
		}
	}
}

// names returns up to n different names of fields.
func (c *client) names(n int) (names []string) {
	taken := map[string]bool{}
	for range n {
		name := pick(c, fieldNames...)
		switch {
		case c.remote != nil:
			name = pick(c, brokerFields...)
		case c.owners && c.oneIn(2):
			name = pick(c, ownedFields...)
		}
		if name == "$max/seat/" && !c.oneIn(4) || taken[name] {
			continue
		}
		taken[name] = true
		names = append(names, name)
	}
	return names
}

func (c *client) condition(name string) state.Condition {
	kind := pick(c, state.IsID, state.IsID, state.IsID, state.IsAbsent, state.Exists)
	return state.Condition{Field: name, Kind: kind, ID: c.ids[name]}
}

// op returns a random operation.
func (c *client) op(name string) state.Op {
	op := state.Op{Field: name, Claim: c.oneIn(6)}
	if name == "$max/seat/" {
		op.Kind, op.Value = pick(c, state.Set, state.Delete), fmt.Append(nil, 1+c.IntN(seatMax+1))
		return op
	}
	if strings.HasPrefix(name, "seat/") {
		op.GroupMax = seatMax
		op.Claim = !c.oneIn(4)
	}
	if c.oneIn(2) {
		op.TTL = time.Duration(1+c.Int64N(c.lease.Milliseconds())) * time.Millisecond
	}
	switch op.Kind = pick(c, state.Set, state.Set, state.Set, state.Delete, state.Touch, state.Add); {
	case name == "count":
		op.Kind = pick(c, state.Add, state.Add, state.Add, state.Touch, state.Delete)
	case name == "doc" && op.Kind == state.Add && !c.oneIn(3):
		op.Kind = state.Set
	}
	switch op.Kind {
	case state.Set:
		op.Value = pick(c, []byte(fmt.Sprintf(`"%d"`, c.Int64N(1000))), fmt.Append(nil, c.IntN(10)))
	case state.Add:
		op.By, op.Min, op.Max = int64(c.IntN(7)-3), -2, 9
	}
	if c.owners {
		c.addOwner(&op)
	}
	return op
}

// read reads a page.
func (c *client) read() {
	q := queue.StateRead{Channel: channel}
	switch c.IntN(6) {
	case 0:
		q.Prefix = "seat/"
	case 1:
		q.Limit = 1 + c.IntN(4)
		if len(c.seen) > 0 {
			q.Cursor = c.seen[c.IntN(len(c.seen))]
		}
	case 2:
		if c.remote == nil || c.remote.identity().user == "" { // a socket has no such call
			q.Fields = c.names(3)
		}
	}
	p := &call{client: c.index, kind: read, query: q}
	c.begin(p)
	ctx, cancel := c.limited()
	defer cancel()
	o := c.store.ReadStates(ctx, []queue.StateRead{q})[0]
	if o.Err != nil {
		c.failed(o.Err)
		c.awaitStore()
		return
	}
	c.end(p, func() { p.page = o.Value })
	c.seen = nil
	for _, f := range o.Value.Fields {
		c.ids[f.Name] = f.ID
		c.seen = append(c.seen, f.Name)
	}
}

// sweep removes what is due.
func (c *client) sweep() {
	p := &call{client: c.index, kind: sweep}
	c.begin(p)
	ctx, cancel := c.limited()
	defer cancel()
	o := c.local.StepStates(ctx, []queue.StateStep{{Channel: channel, Kind: queue.Sweep}})[0]
	if o.Err != nil {
		c.failed(o.Err)
		c.awaitStore()
		return
	}
	c.end(p, func() { p.appended = o.Value })
}

// confirm checks whether the store lost the last update that it acknowledged. If so, a marker is
// appended, unless there is one.
func (c *client) confirm() {
	p := &call{client: c.index, kind: note}
	c.begin(p)
	marker, err := c.local.ConfirmChannel(c.ctx, channel, c.acked)
	switch {
	case err != nil:
		c.failed(err)
	case marker != nil:
		c.end(p, func() { p.appended = queue.Appended{ID: marker.ID, Prev: marker.Prev, Data: marker.Data} })
	}
}
