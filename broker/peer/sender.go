package peer

import "time"

const (
	silentAfter     = time.Second     // an active link is silent after this time without a batch: four heartbeats
	idleSilentAfter = 5 * time.Second // an idle link is silent after this time without a batch
	reportInterval  = time.Second     // how often Doubts reports a silent server
	// maxDoublings bounds the pauses between reports of a server that does not run: 1, 2 and 4 s.
	maxDoublings = 2
	// rememberSender is how long the numbers of a server are kept that is not live and has no link.
	rememberSender = time.Minute
)

// sender is what this server knows about the hints of another server. It outlives the links.
// inbound.mu guards its fields.
type sender struct {
	live     bool
	link     *inboundLink // nil without one
	features features     // of the last link
	to       string       // this server's id that the last link was for. Other ids have other numbers
	next     uint64       // the number expected next

	missing   bool // hints are missing since the last report, by their numbers
	ended     bool // a link has ended since the last report, and the next one has not told its number
	left      bool // it has said goodbye
	continued bool // the same process continues under another id

	lastBatch time.Time // when the last batch arrived, the link began, or the server became live
	lastHint  time.Time // when the last hint arrived or was found missing
	absent    time.Time // when it was last live or had a link

	reported time.Time // when it was last reported
	silences int       // reports during its present silence
	gone     bool      // no process listens at its address
	active   time.Time // the last renewal of its lease, as first read since gone; zero if not read
	runs     bool      // it has renewed its lease since gone
}

// maxSilence returns how long the sender may send nothing. The sender sends quick heartbeats for
// activeTime after a hint. maxSilence expects them until two heartbeats before the end of that
// time, so that a sender that has just become idle is not reported. The first batch of a link comes
// at once.
func (s *sender) maxSilence() time.Duration {
	if s.link == nil || !s.link.started || s.lastBatch.Sub(s.lastHint) < activeTime-2*heartbeat {
		return silentAfter
	}
	return idleSilentAfter
}

// doubted reports whether hints may be missing since the last report.
func (s *sender) doubted() bool { return s.missing || s.ended }

// silent reports whether a live server sends nothing, although it should.
func (s *sender) silent(now time.Time) bool {
	return s.live && !s.left && !s.continued && now.Sub(s.lastBatch) > s.maxSilence()
}

// maySlowly reports whether a doubt may be looked into slowly: the process does not run, or its
// link has just ended. If it runs, later reports look for what it stores from now on.
func (s *sender) maySlowly() bool {
	return !s.missing && (s.gone && !s.runs || s.ended && s.silences == 0)
}

// pause returns the time between two reports of a silence. A process that does not run stores
// nothing more, except by calls that are under way. A process that still renews its lease runs,
// whatever its address answers.
func (s *sender) pause() time.Duration {
	if s.gone && !s.runs {
		return reportInterval << min(max(s.silences-1, 0), maxDoublings)
	}
	return reportInterval
}

// count counts a batch of n hints on the sender's link. number is the number of the first.
func (s *sender) count(number uint64, n int, end ending, now time.Time) {
	k := s.link
	expected := s.next
	if !k.started {
		expected = 0 // the sender's own rule, see link.serve
	}
	if n > 0 || number != expected {
		s.lastHint = now
	}
	if number != s.next || !k.started && !s.features.has(counts) {
		s.missing = true
	} else {
		s.ended = false
	}
	k.started, s.next, s.silences = true, number+uint64(n), 0
	s.left = end.goodbye
}

// report records that the sender is reported, and removes the doubt. The caller looks at what the
// sender has stored after this.
func (s *sender) report(now time.Time) {
	s.missing, s.ended, s.reported = false, false, now
	if s.silent(now) {
		s.silences++
	}
}

// continueAs moves the numbers to a new id of the same process.
func (s *sender) continueAs(other *sender) {
	other.to, other.next, other.missing, other.ended = s.to, s.next, s.missing, s.ended
	s.continued, s.ended = true, false
}
