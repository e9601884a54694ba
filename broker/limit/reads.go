package limit

import "time"

// readQuantum is the least that TakeRead counts, in bytes. Most messages make the store read a few
// hundred bytes. Counted with certainty, a herd of clients that reconnect would fill Senders with
// an entry for each user.
const readQuantum = 16 << 10

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
}
