package sim

import (
	"context"
	"slices"
	"time"

	"switchboard/broker/peer"
	"switchboard/registry"
)

// linkTimeout is how long a link may be without a batch before its receiver ends it.
const linkTimeout = 10 * time.Second

// simLink is the link from one broker to another one. All but its connection is the real one: the
// numbers of hints, and what is dropped.
type simLink struct {
	from, to  *node
	self      string // the id of from when the link began
	server    string // the id of to when the link began
	lastBatch time.Time
	*peer.Carried
}

// SetServers implements member.Links.
func (n *node) SetServers(servers []registry.Server) {
	n.Links.SetServers(servers)
	n.w.mu.Lock()
	defer n.w.mu.Unlock()
	n.listed = nil
	for _, s := range servers {
		if s.ID != n.serverID() {
			n.listed = append(n.listed, s.ID)
		}
	}
}

// Send implements member.Links.
func (n *node) Send(server string, h peer.Hint) {
	n.w.mu.Lock()
	dead := n.dead
	n.w.mu.Unlock()
	if !dead {
		n.Links.Send(server, h)
	}
}

// CloseInbound implements member.Links. The driver ends the links.
func (n *node) CloseInbound() {
	n.onDriver(func() {
		n.leaving = true
		for _, k := range slices.Clone(n.w.links) {
			if k.to == n {
				n.w.endLink(k, "is closed")
			}
		}
		n.Links.CloseInbound()
	})
}

// Goodbye implements member.Links. The driver carries what is sent.
func (n *node) Goodbye(context.Context) {
	n.onDriver(func() {
		n.w.sayGoodbye(n)
		n.saidGoodbye = true
	})
}

// onDriver has the driver call f, and returns after that.
func (n *node) onDriver(f func()) {
	done := make(chan struct{})
	select {
	case n.forDriver <- func() { defer close(done); f() }:
		<-done
	case <-n.gone: // the run has failed
	}
}

// updateLinks ends the links that the brokers end: those of a broker with a new id, and those to a
// server that left the list. It ends a link without batches, too.
func (w *world) updateLinks() {
	for _, k := range slices.Clone(w.links) {
		switch {
		case !k.from.frozen && (k.from.serverID() != k.self || !slices.Contains(k.from.listed, k.server)):
			w.endLink(k, "ends")
		case !k.to.frozen && time.Since(k.lastBatch) > linkTimeout:
			w.endLink(k, "is silent")
		}
	}
}

// endLink ends a link. A new id keeps the queue for the next link.
func (w *world) endLink(k *simLink, how string) {
	w.log("the link from %s to %s %s", k.self, k.server, how)
	w.links = slices.DeleteFunc(w.links, func(other *simLink) bool { return other == k })
	k.End()
}

// openLinks dials the links that are missing. It returns whether there were some.
func (w *world) openLinks() (opened bool) {
	w.updateLinks()
	for _, n := range w.live() {
		for _, id := range n.listed {
			opened = w.openLink(n, id) || opened
		}
	}
	return opened
}

// openLink dials the link from n to a server, unless there is one, or nothing answers.
func (w *world) openLink(n *node, server string) bool {
	for _, to := range w.live() {
		if to.leaving || to.serverID() != server || slices.ContainsFunc(w.links, func(k *simLink) bool { return k.from == n && k.server == server }) {
			continue
		}
		carried, err := n.Carry(server, to.Links)
		if err != nil {
			w.violate("%s refuses the link from %s: %v", server, n.serverID(), err)
			return false
		}
		w.log("a link from %s to %s begins", n.serverID(), server)
		k := &simLink{from: n, to: to, self: n.serverID(), server: server, lastBatch: time.Now(), Carried: carried}
		w.links = append(w.links, k)
		w.carry(k)
		return true
	}
	return false
}

// carry carries what the sender of a link has to send. The receiver handles the hints in any order.
func (w *world) carry(k *simLink) {
	w.receive(k, k.Batches(false))
}

// receive passes batches on to the receiver of a link.
func (w *world) receive(k *simLink, batches [][]byte) {
	carried := 0
	for _, b := range batches {
		hints, _ := k.Receive(b)
		for _, h := range hints {
			w.hints = append(w.hints, pendingHint{k.from.machine, k.to, h})
		}
		carried += len(hints)
	}
	k.lastBatch = time.Now()
	w.sortHints()
	if carried > 0 {
		w.log("%s sends %d hints to %s", k.self, carried, k.server)
	}
}

// sayGoodbye announces on all links of a broker that no more hints follow.
func (w *world) sayGoodbye(n *node) {
	w.openLinks()
	for _, k := range slices.Clone(w.links) {
		if k.from == n && k.to.up() {
			w.log("%s says goodbye to %s", k.self, k.server)
			w.receive(k, k.Batches(true))
			w.endLink(k, "ends after the goodbye")
		}
	}
}

// busyLinks returns the links that can carry hints now.
func (w *world) busyLinks() (busy []*simLink) {
	w.updateLinks()
	for _, k := range w.links {
		if k.from.up() && k.to.up() && k.Waiting() > 0 {
			busy = append(busy, k)
		}
	}
	return busy
}

// heartbeats lets all links between running brokers carry a batch.
func (w *world) heartbeats() {
	w.updateLinks()
	for _, k := range slices.Clone(w.links) {
		if k.from.up() && k.to.up() {
			w.carry(k)
		}
	}
}

// stepLink lets a link carry its hints, lose them or end, or lets a broker dial.
func (w *world) stepLink() {
	busy := w.busyLinks()
	switch lossy := w.profile >= lossy; {
	case lossy && len(w.links) > 0 && w.oneIn(12):
		k := pick(w, w.links)
		if k.from.up() && w.oneIn(2) {
			k.Batches(false) // on their way when the connection ends
		}
		w.endLink(k, "breaks")
	case lossy && len(busy) > 0 && w.oneIn(6):
		k := pick(w, busy)
		w.log("what %s sends to %s is lost", k.self, k.server)
		k.Batches(false)
	case len(busy) > 0 && !w.oneIn(4):
		w.carry(pick(w, busy))
	default:
		for _, n := range w.live() {
			if len(n.listed) > 0 {
				w.openLink(n, pick(w, n.listed))
			}
		}
	}
}

// endLinks ends the links of a broker whose process has ended.
func (w *world) endLinks(n *node) {
	w.hints = slices.DeleteFunc(w.hints, func(h pendingHint) bool { return h.to == n })
	for _, k := range slices.Clone(w.links) {
		if k.from == n || k.to == n {
			w.endLink(k, "ends with the process")
		}
	}
}
