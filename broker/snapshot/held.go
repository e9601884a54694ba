package snapshot

import "switchboard/broker/hub"

// Hold counts the bytes of a series, because the socket of a subscriber is full: the subscriber
// keeps the pages until it has read them, also after the view has newer ones. Each series counts
// once, however many subscribers hold it. Release must follow.
func (s *Snapshots) Hold(c *hub.Channel, series *Series) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if series.holders++; series.holders == 1 {
		s.bytes += series.bytes
		s.recountLocked(c)
	}
}

// Release undoes Hold.
func (s *Snapshots) Release(c *hub.Channel, series *Series) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if series.holders--; series.holders == 0 {
		s.bytes -= series.bytes
		s.recountLocked(c)
	}
}

// recountLocked counts the view of a channel again: it does not count the pages that are held.
func (s *Snapshots) recountLocked(c *hub.Channel) {
	if v := s.views[c.Name]; v != nil {
		s.countLocked(v)
	}
}

// Bytes returns about how many bytes the views and the held pages take.
func (s *Snapshots) Bytes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.bytes
}
