package peer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

const (
	maxInbound = 4096
	// maxSenders is the most servers whose numbers are kept, before the list of servers needs more.
	maxSenders = 2 * maxInbound
)

var (
	errClosed  = errors.New("this server is stopping")
	errTooMany = errors.New("too many peer links")
)

// inbound is the state of the links from other servers, and whether their hints may be lost.
type inbound struct {
	self func() string
	now  func() time.Time

	mu      sync.Mutex // guards the fields below
	senders map[string]*sender
	links   int // senders with a link
	closed  bool

	running sync.WaitGroup // counts the links; Add is called with mu held and closed false
}

// inboundLink is the receiving end of one link.
type inboundLink struct {
	from, to string // the ids of both servers, as the request of the link names them
	was      string // an earlier id of the sender, whose numbers it continues; may be empty
	features features
	stop     context.CancelFunc // makes the caller end the link and call inbound.end

	// The fields below are guarded by inbound.mu.
	sender  *sender
	started bool // whether a batch has arrived
}

func newInbound(self func() string) *inbound {
	return &inbound{self: self, now: time.Now, senders: make(map[string]*sender)}
}

// setLive sets the other live servers. A link from another server stays: the list takes a moment to
// arrive, and a server without a lease may still store.
func (in *inbound) setLive(live map[string]bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	now := in.now()
	for id := range live {
		s := in.senders[id]
		if s == nil {
			s = &sender{}
			in.senders[id] = s
		}
		if !s.live {
			s.live = true
			if s.link == nil {
				s.lastBatch = now // its silence begins
			}
		}
	}
	for id, s := range in.senders {
		if s.live && !live[id] {
			s.live, s.absent = false, now
		}
	}
}

// begin registers a link. It ends an older link of the same server.
func (in *inbound) begin(k *inboundLink) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := in.senders[k.from]
	switch {
	case in.closed:
		return errClosed
	case (s == nil || s.link == nil) && in.links >= maxInbound, s == nil && len(in.senders) >= maxSenders:
		return errTooMany
	case s == nil:
		s = &sender{}
		in.senders[k.from] = s
	}
	if s.link != nil {
		s.link.stop()
	} else {
		in.links++
	}
	in.running.Add(1)
	if former := in.senders[k.was]; former != nil && former.to == k.to && s.to == "" {
		former.continueAs(s)
	}
	if s.to != k.to {
		s.to, s.next = k.to, 0
	}
	s.link, s.features, s.left, s.lastBatch = k, k.features, false, in.now()
	k.sender = s
	return nil
}

// countBatch counts a batch of n hints. number is the number of the first.
func (in *inbound) countBatch(k *inboundLink, number uint64, n int, end ending) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := k.sender
	if s.link != k {
		return // a newer link has taken over; its first number tells what is missing
	}
	now := in.now()
	if k.to == in.self() { // else nothing is known about hints to the present id
		s.lastBatch = now
	}
	s.count(number, n, end, now)
}

// end removes a link. Hints in transit are lost, unless the sender has said goodbye.
func (in *inbound) end(k *inboundLink) {
	defer in.running.Done()
	in.mu.Lock()
	defer in.mu.Unlock()
	s := k.sender
	switch {
	case s.link == k:
		s.link, s.absent, s.lastBatch = nil, in.now(), time.Time{}
		s.ended = s.ended || !s.left && !s.continued
		in.links--
	case !s.features.has(counts):
		s.missing = true // the numbers of the newer link do not tell
	}
}

// dialled records the outcome of a dial: whether no process listens at the address of the server.
// It reports whether the caller must read the lease of the server.
func (in *inbound) dialled(server string, gone bool) (read bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := in.senders[server]
	if s == nil {
		return false
	}
	if s.gone != gone {
		s.gone, s.silences, s.active, s.runs = gone, min(s.silences, 1), time.Time{}, false
	}
	return gone && s.live && !s.left && !s.runs
}

// leaseRead records the last renewal of the lease of a server. If it changes, the server runs.
func (in *inbound) leaseRead(server string, active time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := in.senders[server]
	if s == nil || !s.gone {
		return
	}
	s.runs = s.runs || !s.active.IsZero() && active.After(s.active)
	s.active = active
}

// takeDoubts implements Links.Doubts.
func (in *inbound) takeDoubts() (servers []string, urgent bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	now := in.now()
	for id, s := range in.senders {
		due := s.silent(now) && now.Sub(s.reported) >= s.pause()
		expired := !s.live && s.link == nil && now.Sub(s.absent) > rememberSender
		if due || s.doubted() || expired && !s.left {
			urgent = urgent || !s.maySlowly() && !expired
			s.report(now)
			servers = append(servers, id)
		}
		if expired {
			in.dropLocked(id, s)
		}
	}
	slices.Sort(servers)
	return servers, urgent
}

// unlisted implements Links.Unlisted.
func (in *inbound) unlisted(server string) (doubted bool) {
	in.mu.Lock()
	defer in.mu.Unlock()
	s := in.senders[server]
	if s == nil {
		return true
	}
	if !s.live { // else it is back on the list
		in.dropLocked(server, s)
	}
	doubted = s.doubted() || !s.left
	s.report(in.now())
	return doubted
}

// dropLocked forgets a server and ends its link.
func (in *inbound) dropLocked(server string, s *sender) {
	delete(in.senders, server)
	if s.link != nil {
		s.link.stop()
		s.link = nil
		in.links--
	}
}

// close ends all links and waits for them. No link begins after close.
func (in *inbound) close() {
	in.mu.Lock()
	in.closed = true
	for _, s := range in.senders {
		if s.link != nil {
			s.link.stop()
		}
	}
	in.mu.Unlock()
	in.running.Wait()
}
