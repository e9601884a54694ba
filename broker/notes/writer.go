package notes

import (
	"slices"
	"sync"
	"time"

	"switchboard/internal/note"
)

const (
	// repeat is how long a confirmed name is not noted again. Zero notes each name each time.
	repeat = 0 * time.Second
	// keep is how long notes are kept.
	keep = 20 * time.Second
	// maxNames is the most names in the notes for one master.
	maxNames = 1 << 16
	// bucketTime is the time of the notes that a bucket counts.
	bucketTime = 250 * time.Millisecond
)

// Writer numbers the notes of this process and knows which of them are settled. Its methods are
// safe for concurrent use. A nil Writer writes no notes.
type Writer struct {
	now    func() time.Time
	repeat time.Duration

	mu        sync.Mutex // guards the fields below
	last      uint64     // number of the newest note
	closed    uint64     // no later write relies on the notes up to here
	windowEnd time.Time  // when all notes so far become closed, unless repeat is 0
	spans     []openSpans
	logs      map[string]*log // by key
}

// openSpans counts the open spans with the same start.
type openSpans struct {
	start uint64
	n     int
}

// log is what the Writer knows of the notes under one key.
type log struct {
	state   logState
	buckets []bucket               // oldest first
	names   int                    // in all buckets
	recent  map[note.Name]struct{} // confirmed in this window
}

// logState is whether notes are written under a key.
type logState uint8

const (
	// absent: no reader takes the notes for complete, since the floor is not stored.
	absent logState = iota
	// refused: the store has refused a note. The floor must be removed before the next write.
	refused
	// ready: each write is noted, and the floor is stored or being stored.
	ready
)

// bucket counts notes of about the same time.
type bucket struct {
	began time.Time
	last  uint64
	names int
}

// NewWriter returns a Writer that writes no notes until Start.
func NewWriter() *Writer { return newWriter(time.Now, repeat) }

func newWriter(now func() time.Time, repeat time.Duration) *Writer {
	return &Writer{now: now, repeat: repeat, windowEnd: now().Add(repeat), logs: make(map[string]*log)}
}

// Span is the time from before a write until its hints are handed to the links. While a span is
// open, the notes of its writes are not settled. The zero Span does nothing.
type Span struct {
	w     *Writer
	start uint64 // all notes of the span have higher numbers
}

// Open begins a span. It may be called on a nil Writer.
func (w *Writer) Open() Span {
	if w == nil {
		return Span{}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turnLocked()
	return w.openLocked()
}

func (w *Writer) openLocked() Span {
	if n := len(w.spans); n > 0 && w.spans[n-1].start == w.closed {
		w.spans[n-1].n++
	} else {
		w.spans = append(w.spans, openSpans{w.closed, 1})
	}
	return Span{w, w.closed}
}

// Before reports whether s holds back more notes than other.
func (s Span) Before(other Span) bool { return s.start < other.start }

// Again returns a second Span for the same writes. s must be open.
func (s Span) Again() Span {
	if s.w != nil {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		s.w.spans[s.w.spanLocked(s.start)].n++
	}
	return s
}

// Close ends the span. Close each Span once.
func (s Span) Close() {
	if s.w != nil {
		s.w.mu.Lock()
		defer s.w.mu.Unlock()
		s.w.closeLocked(s)
	}
}

func (w *Writer) closeLocked(s Span) {
	w.spans[w.spanLocked(s.start)].n--
	ended := 0
	for ended < len(w.spans) && w.spans[ended].n == 0 {
		ended++
	}
	w.spans = slices.Delete(w.spans, 0, ended)
}

// spanLocked returns the index of the open spans with a start.
func (w *Writer) spanLocked(start uint64) int {
	at, _ := slices.BinarySearchFunc(w.spans, start, func(o openSpans, start uint64) int {
		switch {
		case o.start < start:
			return -1
		case o.start > start:
			return 1
		}
		return 0
	})
	return at
}

// turnLocked begins a new window if the current one has ended: later writes note all their names
// again, so that the notes so far can settle.
func (w *Writer) turnLocked() {
	if w.repeat == 0 {
		w.closed = w.last
		return
	}
	now := w.now()
	if now.Before(w.windowEnd) {
		return
	}
	w.closed, w.windowEnd = w.last, now.Add(w.repeat)
	for _, l := range w.logs {
		clear(l.recent)
	}
}

// Settled returns the highest number up to which all notes are settled: their writes are answered,
// and the hints of these writes have been handed to the links. 0 on a nil Writer.
func (w *Writer) Settled() uint64 {
	if w == nil {
		return 0
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turnLocked()
	return w.settledLocked()
}

func (w *Writer) settledLocked() uint64 {
	if len(w.spans) > 0 {
		return w.spans[0].start
	}
	return w.closed
}

// Write is one pipeline of writes to a master.
type Write struct {
	w    *Writer
	log  *log
	span Span
	// Entry must be stored before the writes, if its Number is not 0.
	Entry Entry
	// RemoveFloor is whether the floor must be removed before the writes.
	RemoveFloor bool
	// Trim is the number up to which entries must be removed after the Entry is stored, and after the
	// floor is raised to it if it is stored. 0 for none.
	Trim uint64
}

// Begin is called before a pipeline with writes is sent to the master that has a key for notes. key
// is "" if there is none. names are what the writes change, and Begin may reorder them. Call End
// when the pipeline is answered.
func (w *Writer) Begin(key string, names []note.Name) Write {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.turnLocked()
	l := w.logs[key]
	p := Write{w: w, log: l, span: w.openLocked()}
	if l == nil || l.state != ready {
		w.last++ // the floor will be above it
		p.RemoveFloor = l != nil && l.state == refused
		return p
	}
	if names = slices.DeleteFunc(names, l.isRecent); len(names) == 0 {
		return p
	}
	w.last++
	p.Entry = Entry{Number: w.last, Settled: w.settledLocked(), Names: names}
	l.addLocked(w.now(), w.last, len(names))
	if l.names > maxNames {
		p.Trim = l.trimLocked(w.now(), maxNames*3/4)
	}
	return p
}

func (l *log) isRecent(n note.Name) bool {
	_, found := l.recent[n]
	return found
}

// End ends the pipeline. lost is whether an answer is unknown: Redis has then executed no write
// without its note, but it may have failed over. If the store has refused the Entry, call Fail
// first.
func (p Write) End(lost bool) {
	w, l := p.w, p.log
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closeLocked(p.span)
	switch {
	case l == nil || l.state != ready:
	case lost:
		clear(l.recent)
	case w.repeat > 0 && p.Entry.Number > w.closed:
		for _, n := range p.Entry.Names {
			l.recent[n] = struct{}{}
		}
	}
}

// addLocked counts a note.
func (l *log) addLocked(now time.Time, number uint64, names int) {
	l.names += names
	if n := len(l.buckets); n > 0 && now.Sub(l.buckets[n-1].began) < bucketTime && l.buckets[n-1].names < maxNames/16 {
		l.buckets[n-1].last, l.buckets[n-1].names = number, l.buckets[n-1].names+names
		return
	}
	l.buckets = append(l.buckets, bucket{now, number, names})
}

// trimLocked drops the buckets that are too old, and the oldest ones if there are more than most
// names. It returns the number of the last dropped note, to which the floor must be raised, or 0.
func (l *log) trimLocked(now time.Time, most int) uint64 {
	n := 0
	for n < len(l.buckets) && (now.Sub(l.buckets[n].began) >= keep+bucketTime || l.names > most) {
		l.names -= l.buckets[n].names
		n++
	}
	if n == 0 {
		return 0
	}
	floor := l.buckets[n-1].last
	l.buckets = slices.Delete(l.buckets, 0, n)
	return floor
}

// Start begins to write notes under a key. It returns the floor, which must then be stored. If that
// fails, call Fail.
func (w *Writer) Start(key string) (floor uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.logs[key] = &log{state: ready, recent: make(map[note.Name]struct{})}
	return w.last
}

// Fail ends the notes under a key: the store has refused one, or may have lost some. The floor must
// be removed, and Removed be called then. Until then each write removes it.
func (w *Writer) Fail(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.logs[key]; l != nil && l.state == ready {
		l.state = refused
		clear(l.recent)
	}
}

// Removed records that the floor under a key is removed.
func (w *Writer) Removed(key string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if l := w.logs[key]; l != nil && l.state == refused {
		l.state = absent
	}
}

// Ready reports whether notes are written under a key.
func (w *Writer) Ready(key string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.logs[key]
	return l != nil && l.state == ready
}

// Trim drops what is too old from the notes under a key. It returns the number up to which the
// store must remove entries, 0 for none.
func (w *Writer) Trim(key string) uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	l := w.logs[key]
	if l == nil || l.state != ready || len(l.buckets) == 0 || w.now().Sub(l.buckets[0].began) < keep+keep/4 {
		return 0
	}
	return l.trimLocked(w.now(), maxNames)
}
