package session

import (
	"slices"

	"switchboard/broker/dialect"
	"switchboard/broker/hub"
	"switchboard/broker/snapshot"
	"switchboard/internal/meter"
	"switchboard/internal/wire"
)

// maxOvertaken is how many series of pages in a row become useless until the connection is closed.
// A series is useless if the store no longer has the messages that follow it.
const maxOvertaken = 2

// pageSeries is a series of pages that is not written completely. Its subscription is held: no
// message is written before the last page. Only the session's loop uses it.
type pageSeries struct {
	sub       *hub.Subscription
	requested bool               // the client asked for the pages; false after a gap
	making    bool               // the pool is making the pages
	failed    bool               // the pages were not made, and the next tick tries again
	pages     []*dialect.Message // pages that are made and not yet written
	series    *snapshot.Series   // of pages, held until all are written or dropped; nil until they are made
}

// startPages writes the pages of a held subscription, as the socket takes them. Then it starts the
// subscription. A nil series has no pages.
func (s *Session) startPages(sub *hub.Subscription, series *snapshot.Series) {
	if series == nil {
		sub.Start()
		return
	}
	p := &pageSeries{sub: sub, pages: series.Pages}
	switch s.writePages(p); {
	case s.state == closed:
	case len(p.pages) == 0:
		sub.Start()
	default:
		p.series = series
		s.m.opts.Snapshots.Hold(sub.Channel, series)
		s.addPages(p)
	}
}

// writePages writes pages until the socket is backed up.
func (s *Session) writePages(p *pageSeries) {
	for len(p.pages) > 0 && s.state != closed && !s.conn.Backlogged() {
		s.conn.Write(&dialect.Batch{Messages: p.pages[:1]})
		p.pages = p.pages[1:]
	}
	s.checkBacklog()
}

// continuePages writes more pages, because the socket is writable.
func (s *Session) continuePages() {
	u := s.stateUse()
	if u == nil {
		return
	}
	for _, p := range slices.Clone(u.pages) {
		if p.making || p.failed || !s.isUnwritten(p) { // a write may have ended the session
			continue
		}
		if s.writePages(p); len(p.pages) == 0 && s.state != closed {
			s.dropPages(p.sub)
			p.sub.Start()
		}
	}
}

// requestPages has the pool make new pages for a held subscription, and then writes them. After a
// failure, the next tick tries again. requested is pageSeries.requested.
func (s *Session) requestPages(sub *hub.Subscription, requested bool) {
	s.dropPages(sub)
	p := &pageSeries{sub: sub, requested: requested}
	s.addPages(p)
	s.makePages(p)
}

func (s *Session) makePages(p *pageSeries) {
	p.making, p.failed = true, false
	r := stateRequest{channel: p.sub.Channel, from: p.sub.Cursor(), prefix: p.sub.Filter().Prefix, pages: true}
	if p.requested {
		r.ownership = s.ensureOwnership(r.channel.Name)
		r.ownership.beginSubscribe()
	}
	by := s.sender()
	release := s.m.opts.Hub.Hold(r.channel.Name) // the subscription may end meanwhile
	s.m.opts.Pool.Go(func() {
		defer release()
		read := new(meter.Meter)
		series, err := s.m.prepareState(s.m.meteredContext(read), r)
		if r.ownership != nil { // the client has asked for the pages
			s.m.senders.TakeRead(by, read.Read())
		}
		s.shard.loop.Post(func() {
			if r.ownership != nil {
				s.dropUnusedOwnership(r.ownership)
			}
			switch p.making = false; {
			case !s.isUnwritten(p): // the subscription has ended, or newer pages replace these
			case err != nil:
				s.m.opts.Logger.Warn().Err(err).Msg("pages of a state are not made; the next tick tries again")
				p.failed = true
				s.shard.checkNextTick(s)
			default:
				if s.dropPages(p.sub); p.requested {
					s.chargeRead(read.Bytes(), 1)
				}
				s.corked(func() { s.startPages(p.sub, series) })
			}
		})
	})
}

// retryPages makes the pages for which makePages failed.
func (s *Session) retryPages() {
	if u := s.stateUse(); u != nil {
		for _, p := range u.pages {
			if p.failed {
				s.makePages(p)
			}
		}
	}
}

func (s *Session) addPages(p *pageSeries) {
	u := s.ensureStateUse()
	u.pages = append(u.pages, p)
}

// isUnwritten reports whether the session still has to make or write pages of p.
func (s *Session) isUnwritten(p *pageSeries) bool {
	u := s.stateUse()
	return u != nil && slices.Contains(u.pages, p)
}

// dropPages drops the pages of a subscription that are not written.
func (s *Session) dropPages(sub *hub.Subscription) {
	if u := s.stateUse(); u != nil {
		u.pages = slices.DeleteFunc(u.pages, func(p *pageSeries) bool {
			if p.sub == sub {
				s.releasePages(p)
			}
			return p.sub == sub
		})
		s.dropEmptyStateUse()
	}
}

// releasePages undoes the hold of a series that is dropped.
func (s *Session) releasePages(p *pageSeries) {
	if p.series != nil {
		s.m.opts.Snapshots.Release(p.sub.Channel, p.series)
		p.series = nil
	}
}

// Gap implements hub.Subscriber. A client that sees the state receives new pages after the gap.
func (s *Session) Gap(sub *hub.Subscription, after, id int64) (hold bool) {
	s.sendGap(sub.Channel.Name, after, id)
	if !sub.Filter().State || s.state == closed {
		return false
	}
	if sub.Overtaken() >= maxOvertaken {
		s.close(wire.CloseSlow, "the pages of the state were not read in time", 0)
		return false
	}
	s.requestPages(sub, false)
	return true
}
