package member

import (
	"context"
	"maps"
	"slices"
	"time"

	"switchboard/broker/peer"
	"switchboard/internal/state"
	"switchboard/registry"
)

// Links are the connections to the other servers. [peer.Links] implements it.
type Links interface {
	Send(server string, h peer.Hint)
	Miss(server string)                      // makes a server compare with the store, as after a lost hint
	Doubts() (servers []string, urgent bool) // whose hints may have been lost since the last call
	// Unlisted forgets a server that the store no longer lists. doubted is false if none of its hints
	// can be missing.
	Unlisted(server string) (doubted bool)
	SetServers(servers []registry.Server)
	CloseInbound()               // ends the links from other servers, and their calls
	Goodbye(ctx context.Context) // sends what is queued, and announces that no more hints follow
}

// LocalHint implements delivery.Options.Local: it acts on a hint from this server. decoded is the
// message of the hint; if its Data is nil, it is not known.
func (m *Member) LocalHint(h peer.Hint, decoded state.Message) {
	if decoded.Data == nil {
		m.Hint(h)
	} else if c := m.parts.Hub.Channel(h.Name); c != nil {
		c.HintMessage(h.ID, h.Prev, h.Data, decoded)
	}
}

// Hint acts on a hint from this server or from another one.
func (m *Member) Hint(h peer.Hint) {
	p := &m.parts
	switch h.Kind {
	case peer.Channel, peer.ChannelEntry:
		if c := p.Hub.Channel(h.Name); c != nil {
			c.Hint(h.ID, h.Prev, h.Data)
		}
	case peer.Client:
		if m.opts.ClientHint != nil {
			m.opts.ClientHint(h.Name)
		}
		p.Sessions.Hint(h.Name, h.ID, h.Prev, h.Data)
	case peer.Supersede:
		p.Sessions.Supersede(h.Name, h.ID)
	case peer.Acknowledged:
		p.Sessions.Acknowledged(h.Name, h.Prev, h.ID)
	case peer.Presence, peer.Here:
		p.Presence.Hint(h)
	case peer.User:
		p.Presence.UserChanged(h.Name)
	}
}

// Send sends a hint to another server. It does nothing without links.
func (m *Member) Send(server string, h peer.Hint) {
	if m.parts.Links != nil {
		m.parts.Links.Send(server, h)
	}
}

// Supersede implements session.Notify.Superseded: it notifies the server that lost a client, or all
// servers if the server is unknown.
func (m *Member) Supersede(server, client string, generation int64) {
	h := peer.Hint{Kind: peer.Supersede, Name: client, ID: generation}
	if server != "" {
		m.Send(server, h)
		return
	}
	m.toOthers(func(other string) { m.Send(other, h) })
}

// MissHints makes all servers compare their queues with the store, this one included: messages may
// have been stored without a hint, and it is not known in which queues.
func (m *Member) MissHints() {
	if m.parts.Links == nil {
		return
	}
	m.addDoubt(m.ID())
	m.toOthers(m.parts.Links.Miss)
}

// toOthers calls send for all other servers. A server that is live, but not known here yet, misses
// a hint when it becomes known, see missEarlier.
func (m *Member) toOthers(send func(server string)) {
	m.sentToAll.Store(new(time.Now())) // before Live is read; setLive does it the other way round
	for _, id := range slices.Sorted(maps.Keys(m.Live())) {
		if id != m.ID() {
			send(id)
		}
	}
}

// missEarlier makes servers that were not live before compare with the store, if hints to all were
// sent that they did not get. It must come before the links know the servers: a link that begins
// has the count from before it.
func (m *Member) missEarlier(before, live map[string]registry.Server) {
	if m.sentToAll.Load() == nil || m.parts.Links == nil {
		return
	}
	for _, id := range slices.Sorted(maps.Keys(live)) { // sorted, so that a simulation can repeat a run
		if _, was := before[id]; !was && id != m.ID() {
			m.parts.Links.Miss(id)
		}
	}
}

// forgetToAll forgets hints to all servers that were sent more than a lease before a beat that has
// succeeded. The servers that were live then are known by now, also one whose entry a failover of
// the store had lost.
func (m *Member) forgetToAll(beat time.Time) {
	if at := m.sentToAll.Load(); at != nil && beat.Sub(*at) > m.lease {
		m.sentToAll.CompareAndSwap(at, nil)
	}
}

// Acknowledged implements session.Notify.Acknowledged.
func (m *Member) Acknowledged(server, client string, generation, id int64) {
	m.Send(server, peer.Hint{Kind: peer.Acknowledged, Name: client, ID: id, Prev: generation})
}

// UserChanged implements session.Notify.UserChanged: it notifies the servers that watch the user
// that a client of the user connected or disconnected. Servers of former versions do not register
// themselves: all that watch some user are notified.
func (m *Member) UserChanged(user string, watchers []string) {
	m.parts.Presence.UserChanged(user)
	h := peer.Hint{Kind: peer.User, Name: user}
	for _, id := range watchers {
		if id != m.ID() {
			m.Send(id, h)
		}
	}
	if former := m.former.Load(); former != nil {
		for _, s := range *former {
			if s.Watching > 0 {
				m.Send(s.ID, h)
			}
		}
	}
}

// HasFormer reports whether servers of former versions may be live, which do not know which servers
// watch a user. It is true before the first beat.
func (m *Member) HasFormer() bool {
	former := m.former.Load()
	return former == nil || len(*former) > 0
}
