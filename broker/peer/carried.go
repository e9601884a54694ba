package peer

import "bytes"

// Carried is a link whose caller carries the batches, one by one, instead of a connection. A
// simulation uses it to decide when a link begins and ends, and which batches arrive. All that
// counts hints is the same as on other links.
type Carried struct {
	from, to *Links
	out      *link
	in       *inboundLink
}

// Carry begins a link to a server that is on the list of l. It takes the place of the dialled one,
// so Run must not run. It returns an error if the server refuses the link.
func (l *Links) Carry(server string, to *Links) (*Carried, error) {
	out, self := l.link(server), l.opts.Self()
	c := &Carried{from: l, to: to, out: out}
	c.in = &inboundLink{from: self, to: server, features: supported, stop: func() {}}
	if out.countedAs != self {
		c.in.was = out.countedAs
	}
	if err := to.in.begin(c.in); err != nil {
		return nil, err
	}
	out.countedAs = self
	out.open()
	return c, nil
}

// Batches returns what the sender sends now, one heartbeat at least. goodbye announces that no more
// hints follow.
func (c *Carried) Batches(goodbye bool) (batches [][]byte) {
	if goodbye {
		c.out.leave()
	}
	for whole := false; !whole; {
		whole, _ = c.out.flushQueue(goodbye, func(b []byte) error {
			batches = append(batches, bytes.Clone(b))
			return nil
		})
	}
	return batches
}

// Receive passes a batch on to the receiver, which counts it. It returns the hints of the batch, to
// be handled, and whether the sender has said goodbye.
func (c *Carried) Receive(batch []byte) (hints []Hint, goodbye bool) {
	number, hints, end, err := decodeBatch(batch, nil, c.in.features)
	if err != nil {
		panic(err)
	}
	c.to.in.countBatch(c.in, number, len(hints), end)
	return hints, end.goodbye
}

// End ends the link. Hints are dropped until the next one, unless the sender has a new id: then the
// queue waits for the next link.
func (c *Carried) End() {
	if c.from.opts.Self() == c.in.from {
		c.out.drop()
	}
	c.to.in.end(c.in)
}

// Waiting returns how many hints wait in the queue.
func (c *Carried) Waiting() int {
	c.out.mu.Lock()
	defer c.out.mu.Unlock()
	return len(c.out.hints)
}
