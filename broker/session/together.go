package session

import "switchboard/internal/wire"

// maxGathered bounds what together keeps back, in bytes: with more behind it a socket could not say
// in time that it is backed up.
const maxGathered = 16 << 10

// together lets f's writes to s go out as one: `connected`, `subscribed` and what was missed, say. A write costs
// some 5 µs: of 15,000 that come back and resume each cost 95 µs of CPU instead of 110.
func (s *Session) together(f func()) {
	s.shard.gathering = s
	f()
	s.shard.flush(s)
	s.shard.gathering = nil
}

// put writes b, now or together with more.
func (s *Session) put(b *wire.Batch) {
	sh := s.shard
	size := 0
	if sh.gathering == s {
		for _, f := range b.Frames {
			size += f.Size()
		}
	}
	if sh.gathering != s || sh.bytes+size > maxGathered {
		sh.flush(s)
		s.write(b)
		return
	}
	sh.gathered = append(sh.gathered, b.Frames...)
	sh.bytes += size
}

// write hands b to the connection. While a socket is backed up each tick counts.
func (s *Session) write(b *wire.Batch) {
	if s.conn.Write(b); s.conn.Backlogged() {
		s.soon()
	}
}

// flush writes what was gathered for s.
func (sh *shard) flush(s *Session) {
	if sh.gathering != s || len(sh.gathered) == 0 {
		return
	}
	b := wire.Batch{Frames: sh.gathered}
	sh.gathered, sh.bytes = nil, 0 // the write may end the session, which writes again
	s.write(&b)
	if sh.gathered == nil {
		clear(b.Frames)
		sh.gathered = b.Frames[:0]
	}
}
