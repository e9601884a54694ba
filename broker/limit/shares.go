package limit

import "sync"

// Shares counts what each sender has under way of something that all senders use together, and
// bounds it. It has no entry for a sender with nothing under way. It is safe for concurrent use. A
// nil Shares has no bound.
type Shares struct {
	most int // of one sender

	mu   sync.Mutex // guards used
	used map[Sender]int
}

// NewShares returns nil if most is 0: no bound.
func NewShares(most int) *Shares {
	if most == 0 {
		return nil
	}
	return &Shares{most: most, used: map[Sender]int{}}
}

// Take counts one more for the sender, unless it has as many as it may have. Give must follow if
// Take returns true.
func (s *Shares) Take(sender Sender) bool {
	if s == nil {
		return true
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used[sender] >= s.most {
		return false
	}
	s.used[sender]++
	return true
}

// Give counts one less for the sender.
func (s *Shares) Give(sender Sender) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.used[sender]--; s.used[sender] == 0 {
		delete(s.used, sender)
	}
}
