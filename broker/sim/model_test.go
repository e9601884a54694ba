package sim

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sort"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// model is the expected state of the stores, derived from the calls that were executed.
type model struct {
	w               *world
	channels        map[string]*journal
	clients         map[string]*journal
	fields          map[string]*fieldsModel // by channel
	dead            map[string]bool         // servers that were declared dead
	bound           map[string][]*conn      // by client: the candidates for the connection that was bound last
	boundAt         map[string]time.Time    // by client: when it was bound last
	boundLate       map[string]string       // by client: the server that it was bound to by a call without a caller
	boundAfterDeath map[string]string       // by client: the server that it was bound to after that server was declared dead
}

// journal holds all messages that were ever in a queue.
type journal struct {
	ids       []int64
	data      map[int64]string
	silent    []int64            // channels: the entries of the janitor, which sends no hints
	floor     int64              // channels: the messages up to this id are gone
	held      []int64            // clients: the ids in the list
	lost      map[int64]struct{} // clients: dropped because of the cap
	erased    map[int64]int64    // channels: erased messages, and the entries that report this
	withdrawn map[int64]struct{} // clients: removed because another client of the user has acknowledged them
}

func newModel(w *world) *model {
	return &model{
		w: w, channels: map[string]*journal{}, clients: map[string]*journal{}, fields: map[string]*fieldsModel{},
		dead: map[string]bool{}, bound: map[string][]*conn{}, boundAfterDeath: map[string]string{},
		boundAt: map[string]time.Time{}, boundLate: map[string]string{},
	}
}

func journalOf(m map[string]*journal, name string) *journal {
	j := m[name]
	if j == nil {
		j = &journal{data: map[int64]string{}, lost: map[int64]struct{}{}, erased: map[int64]int64{}, withdrawn: map[int64]struct{}{}}
		m[name] = j
	}
	return j
}

func (m *model) channel(name string) *journal { return journalOf(m.channels, name) }
func (m *model) client(name string) *journal  { return journalOf(m.clients, name) }

func (j *journal) add(messages []queue.Message) {
	for _, message := range messages {
		if message.ID > j.last() {
			j.ids = append(j.ids, message.ID)
			j.data[message.ID] = string(message.Data)
		}
	}
}

func (j *journal) last() int64 {
	if len(j.ids) == 0 {
		return 0
	}
	return j.ids[len(j.ids)-1]
}

// between returns the ids above after, up to and including to.
func (j *journal) between(after, to int64) []int64 {
	from := sort.Search(len(j.ids), func(i int) bool { return j.ids[i] > after })
	end := sort.Search(len(j.ids), func(i int) bool { return j.ids[i] > to })
	return j.ids[from:max(from, end)]
}

// announced returns the last id of a channel that its subscribers must know when nothing is in
// progress. The servers learn of the janitor's entries by their next sweep, or when the dead server
// is forgotten. Both take some time, which passes only in runs with faults.
func (m *model) announced(channel string) int64 {
	j := m.channel(channel)
	for i := len(j.ids) - 1; i >= 0; i-- {
		id := j.ids[i]
		silent := slices.Contains(j.silent, id)
		if !silent || m.w.healed && m.fieldsOf(channel).needsHint(id) {
			return id
		}
	}
	return 0
}

// record is a client's state in the stores.
type record struct {
	queue.Client
	held  []int64
	entry registry.Binding // the client's entry in u_{user}
}

func (r record) equal(o record) bool {
	return r.Client == o.Client && slices.Equal(r.held, o.held) && r.entry == o.entry
}

// readRecord reads the record of the client that a call is about.
func (m *model) readRecord(s subject) (r record) {
	if s.client == "" {
		return r
	}
	ctx := context.Background()
	r.Client, _, _ = m.w.queue.Client(ctx, s.client)
	page, err := m.w.queue.Window(ctx, s.client, r.Generation, 0, queue.MaxWindow)
	if err == nil {
		m.client(s.client).add(page.Messages)
		for _, message := range page.Messages {
			r.held = append(r.held, message.ID)
		}
	}
	if user := m.w.clients[s.client].user; user != "" {
		bindings, _ := m.w.registry.User(ctx, user)
		for _, b := range bindings {
			if b.Client == s.client {
				r.entry = b
			}
		}
	}
	return r
}

// checkExecuted checks the changes that a call made to the stores.
func (m *model) checkExecuted(c *call, before record) {
	if channel := c.subject.channel; channel != "" {
		last := m.channel(channel).last()
		m.readChannel(c)
		if e := m.fieldsOf(channel).entry(m.channel(channel).last()); c.op == "UpdateChannel" && m.channel(channel).last() > last && isUpdate(e) {
			m.fieldsOf(channel).updatedAt = m.w.storeNow()
		}
		if m.w.hasStates {
			m.fieldsOf(channel).check(c)
		}
	}
	if c.op == "Bind" && c.err == nil {
		m.checkLate(c)
	}
	if c.subject.client != "" {
		m.checkClient(c, before, m.readRecord(c.subject))
	}
	if c.op == "Ack" {
		m.checkWithdrawn(c)
	}
	if c.stage != executed {
		return
	}
	if c.op == "User" && c.function == "readStore" && c.err == nil {
		c.node.userRead(c.subject.user, c.value.([]registry.Binding))
	}
	if server := c.subject.server; server != "" && m.dead[server] && c.op != "DeclareDead" && !errors.Is(c.err, registry.ErrDead) {
		m.w.violate("%v was allowed, but the server was declared dead", c)
	}
	if c.op == "Bind" && c.err == nil {
		// The call does not name its connection: it is one of those that are not bound yet. A call
		// without a caller binds none.
		candidates := slices.DeleteFunc(slices.Clone(m.w.conns), func(d *conn) bool {
			return c.orphan || d.client.name != c.subject.client || d.node != c.node || d.confirmed || d.bound || d.reason != ""
		})
		if len(candidates) == 1 {
			candidates[0].bound = true
		}
		m.bound[c.subject.client] = candidates
	}
	if (c.op == "Bind" || c.op == "Refresh") && c.err == nil && m.dead[c.subject.owner] {
		m.boundAfterDeath[c.subject.client] = c.subject.owner
	}
	if declared, _ := c.value.(bool); c.op == "DeclareDead" && declared {
		m.dead[c.subject.server] = true
	}
}

// checkLate checks that a bind whose caller gave up replaces no binding made after the call began,
// and is not executed after queue.MaxBindDelay. The store does not tell apart what happened within
// one millisecond.
func (m *model) checkLate(c *call) {
	name := c.subject.client
	if c.orphan && m.boundAt[name].UnixMilli() > c.began.UnixMilli() {
		m.w.violate("%v was abandoned, and replaced a newer binding", c)
	}
	if c.orphan && time.Since(c.began) > queue.MaxBindDelay {
		m.w.violate("%v was abandoned, and executed after %v", c, time.Since(c.began))
	}
	m.boundAt[name] = time.Now()
	delete(m.boundLate, name)
	if c.orphan {
		m.boundLate[name] = c.subject.owner
	}
}

// readChannel adds what a call has stored in its channel.
func (m *model) readChannel(c *call) {
	name := c.subject.channel
	j := m.channel(name)
	page, _ := m.w.queue.ReadChannel(context.Background(), name, j.last(), 1024)
	for _, message := range page.Messages {
		if c.node == nil {
			j.silent = append(j.silent, message.ID)
		}
		if state.IsEntry(message.Data) {
			m.fieldsOf(name).add(message)
		}
	}
	j.add(page.Messages)
	j.floor = page.Floor
	for _, message := range page.Messages {
		m.reportedBy(name, message)
	}
}

func (m *model) checkClient(c *call, before, after record) {
	name, generation := c.subject.client, c.subject.generation
	current := before.Generation
	if c.op == "BindUser" || c.op == "ReleaseUser" || c.op == "ForgetUser" {
		current = before.entry.Generation
	}
	if generation > 0 && generation < current && !before.equal(after) {
		m.w.violate("%v: generation %d is stale, %d is current, but\n  %+v became\n  %+v", c, generation, current, before, after)
	}
	if after.Generation < before.Generation {
		m.w.violate("%v: the generation of %s went back", c, name)
	}
	if c.op == "Release" && before.Server != c.subject.owner && !before.equal(after) {
		m.w.violate("%v took %s from %s", c, name, before.Server)
	}
	if listed, _ := m.w.registry.HeldClients(context.Background(), after.Server, 100); after.Server != "" && !m.dead[after.Server] && after.Server != m.boundLate[name] &&
		!slices.Contains(listed, name) {
		m.w.violate("%v: %s is at %s, but the janitor cannot find it", c, name, after.Server)
	}
	j := m.client(name)
	for _, id := range before.held {
		switch {
		case slices.Contains(after.held, id):
		case c.op == "Ack" && id <= m.w.clients[name].ackedTo:
		case c.op == "AppendClient": // dropped because of the cap
			j.lost[id] = struct{}{}
		default:
			m.w.violate("%v took %d out of the list of %s, which has acknowledged up to %d", c, id, name, m.w.clients[name].ackedTo)
		}
	}
	j.held = after.held
}

// subscribed records that a subscription began at id. after is the position that was requested, or
// nil.
func (c *conn) subscribed(channel string, id int64, after *int64, recovered *bool) {
	w, j := c.client.w, c.client.w.model.channel(channel)
	if c.subs[channel] != nil {
		w.violate("%v is subscribed to %s twice", c, channel)
	}
	if id > j.last() {
		w.violate("%v begins at %d of %s, whose last id is %d", c, id, channel, j.last())
	}
	c.subs[channel] = &subscription{cursor: id, filter: state.Filter{By: true}}
	switch {
	case after == nil:
		c.setPosition(channel, id)
	case recovered == nil && id != *after: // for `connected`: the gap must follow
		c.subs[channel].cursor, c.expectGap = *after, after
	case recovered == nil:
	case *recovered != (id == *after):
		w.violate("%v asked for %s after %d and begins at %d; recovered is %v", c, channel, *after, id, *recovered)
	case !*recovered:
		c.checkGap(channel, *after, id)
		c.setPosition(channel, id)
	}
}

// checkGap checks that a gap covers lost messages and none that the store still has.
func (c *conn) checkGap(channel string, after, id int64) {
	j := c.client.w.model.channel(channel)
	ids := j.between(after, id)
	if len(ids) == 0 {
		c.client.w.violate("%v received a gap in %s from %d to %d, where nothing is missing", c, channel, after, id)
	} else if ids[len(ids)-1] > j.floor {
		c.client.w.violate("%v received a gap in %s from %d to %d, but the store has everything above %d", c, channel, after, id, j.floor)
	}
}

// gap processes a gap event.
func (c *conn) gap(channel string, after, id int64) {
	w := c.client.w
	if channel == "" {
		c.inboxGap(after, id)
		return
	}
	s := c.subs[channel]
	c.expectGap = nil
	if s == nil {
		w.violate("%v received a gap in %s without a subscription", c, channel)
		return
	}
	c.passHidden(channel, after)
	c.checkGap(channel, after, id)
	s.cursor = id
	c.setPosition(channel, id)
	if s.follows() {
		s.follower.Gap()
		c.keepState(channel, s)
	}
}

// passHidden moves the position of a subscription to id. No message that the client sees may be in
// between.
func (c *conn) passHidden(channel string, id int64) {
	s := c.subs[channel]
	next := c.client.w.model.nextVisible(channel, s.cursor, s.filter)
	if s.cursor > id || next != 0 && next <= id {
		c.client.w.violate("%v has %s up to %d, not %d; message %d is missing", c, channel, s.cursor, id, next)
	}
	s.cursor = id
	c.setPosition(channel, id)
}

func (c *conn) message(e wire.Event) {
	w, channel, id := c.client.w, e.Channel, *e.ID
	if channel == "" {
		c.inboxMessage(id, e.Data)
		return
	}
	s := c.subs[channel]
	if s == nil {
		w.violate("%v received message %d of %s without a subscription", c, id, channel)
		return
	}
	if next := w.model.nextVisible(channel, s.cursor, s.filter); next != id && !w.model.mayShow(channel, s, id) {
		w.violate("%v received message %d of %s after %d, want %d", c, id, channel, s.cursor, next)
	}
	c.change(s, e)
	s.cursor = id
	c.setPosition(channel, id)
	c.keepState(channel, s)
}

func (c *conn) inboxMessage(id int64, data []byte) {
	w, cl := c.client.w, c.client
	j := w.model.client(cl.name)
	if id <= c.inbox {
		w.violate("%v received message %d of its queue after %d", c, id, c.inbox)
	}
	if stored, known := j.data[id]; !known || stored != string(data) {
		w.violate("%v received message %d of its queue with data %s, want %q", c, id, data, stored)
	}
	for _, skipped := range j.between(c.inbox, id-1) {
		if _, withdrawn := j.withdrawn[skipped]; skipped > cl.ackedTo && !withdrawn {
			w.violate("%v received message %d of its queue, but not %d before it", c, id, skipped)
		}
	}
	c.inbox = id
	cl.seen[id] = struct{}{}
	cl.received = max(cl.received, id)
	if cl.auto {
		cl.ackedTo = max(cl.ackedTo, id)
	}
}

func (c *conn) inboxGap(after, id int64) {
	w, j := c.client.w, c.client.w.model.client(c.client.name)
	missing := 0
	for _, covered := range j.between(after, id) {
		if _, lost := j.lost[covered]; lost {
			missing++
			c.client.lost[covered] = struct{}{}
		} else if _, withdrawn := j.withdrawn[covered]; covered > c.client.ackedTo && !withdrawn {
			w.violate("%v received a gap in its queue from %d to %d, but the list has %d", c, after, id, covered)
		}
	}
	if missing == 0 {
		w.violate("%v received a gap in its queue from %d to %d, where nothing is missing", c, after, id)
	}
	if after < c.inbox {
		w.violate("%v received a gap in its queue after %d, and had %d already", c, after, c.inbox)
	}
	c.inbox = id
}

// checkError checks an error answer: it is allowed only if the store may have failed.
func (m *model) checkError(c *conn, req request, e wire.Event) {
	superseded := !slices.Contains(m.bound[c.client.name], c)
	switch unavailable := e.Code == string(wire.Unavailable); {
	case unavailable && m.w.faulty(), isRefusal(req, e.Code):
		return
	case unavailable && superseded && req.kind == wire.TypePublish: // a later connection owns fields
		return
	}
	m.w.violate("the request of %v was refused: %s: %s %s", c, fmt.Sprint(req), e.Code, e.Message)
}
