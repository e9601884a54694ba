package limit

import "time"

// readQuantum is the least that TakeRead counts, in bytes. Most messages make the store read a few
// hundred bytes. Counted with certainty, a herd of clients that reconnect would fill Senders with
// an entry for each user.
const readQuantum = 16 << 10

// MayAllRead reports whether ReadWait returns 0 for every sender. It takes no lock, since most of
// the time no sender has read too much.
func (s *Senders) MayAllRead() bool {
	if s == nil {
		return true
	}
	at := s.readableAt.Load()
	return at == 0 || at <= int64(time.Since(s.epoch))
}

// ReadWait returns how long it is until the store may be read again for a message of the sender, or
// 0 if it may be read now.
func (s *Senders) ReadWait(sender Sender) time.Duration {
	if s == nil || s.rates.Read.None() {
		return 0
	}
	sh, now := s.shard(sender), time.Since(s.epoch)
	sh.mu.Lock()
	read := sh.entries[sender].read
	sh.mu.Unlock()
	return read.Take(s.rates.Read, 1, now)
}

// TakeRead takes n bytes that the store has sent for messages of the sender, also if that is more
// than there is. It counts on this server only, and without the ledger: a report would be a read,
// too. Amounts below readQuantum count as a readQuantum or as nothing, so that the mean is exact.
func (s *Senders) TakeRead(sender Sender, n int) {
	if s == nil || s.rates.Read.None() {
		return
	}
	if n = roundToQuantum(n, min(readQuantum, s.rates.Read.part(1))); n == 0 {
		return
	}
	sh, now := s.shard(sender), time.Since(s.epoch)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	use := sh.entries[sender]
	use.read.owe(s.rates.Read, n, now)
	sh.setLocked(sender, use)
	s.noteReadWait(use.read, now)
}

// noteReadWait keeps readableAt after the end of the wait of a sender with this bucket.
func (s *Senders) noteReadWait(read Bucket, now time.Duration) {
	wait := read.Take(s.rates.Read, 1, now)
	if wait == 0 {
		return
	}
	for at := int64(now + wait); ; {
		old := s.readableAt.Load()
		if old >= at || s.readableAt.CompareAndSwap(old, at) {
			return
		}
	}
}
