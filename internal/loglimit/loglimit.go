// Package loglimit keeps a warning that repeats from filling the log: the first is logged at once,
// those that follow within an interval are counted, and a line at the end of the interval says how
// many there were.
//
// zerolog's own samplers see the level of a line and not its message. So a burst of one message
// would hide all others, and nothing would say how many there were.
package loglimit

import (
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Every is the interval that the programs use.
const Every = 10 * time.Second

// Limit counts the warnings and errors of one log by their messages. Messages are constants of the
// program: each that was logged within the last interval takes an entry.
type Limit struct {
	log   zerolog.Logger
	every time.Duration

	mu       sync.Mutex // guards the fields below
	messages map[string]*entry
	closed   bool
}

// entry is a message that was logged less than an interval ago.
type entry struct {
	level    zerolog.Level
	repeated int                  // since the last line
	fields   func(*zerolog.Event) // of the last one; may be nil
	timer    *time.Timer
}

// New returns a Limit in front of log. Its Close writes what is counted at the end.
func New(log zerolog.Logger, every time.Duration) *Limit {
	return &Limit{log: log, every: every, messages: make(map[string]*entry)}
}

// Logger returns the log with its warnings and errors limited. Other levels pass.
func (l *Limit) Logger() zerolog.Logger { return l.log.Hook(l) }

// Run implements zerolog.Hook.
func (l *Limit) Run(e *zerolog.Event, level zerolog.Level, message string) {
	if (level == zerolog.WarnLevel || level == zerolog.ErrorLevel) && !l.first(level, message, nil) {
		e.Discard()
	}
}

// Warn logs a warning, limited as those of Logger. The line that counts has the fields of the last
// one, and fields may be called after Warn has returned. Nil means none.
func (l *Limit) Warn(message string, fields func(*zerolog.Event)) {
	if l.first(zerolog.WarnLevel, message, fields) {
		write(l.log.Warn(), fields, message)
	}
}

func write(e *zerolog.Event, fields func(*zerolog.Event), message string) {
	if fields != nil {
		e = e.Func(fields)
	}
	e.Msg(message)
}

// first reports whether a line is to be logged now. Otherwise it is counted.
func (l *Limit) first(level zerolog.Level, message string, fields func(*zerolog.Event)) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return true
	}
	if e := l.messages[message]; e != nil {
		e.repeated, e.fields = e.repeated+1, fields
		return false
	}
	e := &entry{level: level}
	e.timer = time.AfterFunc(l.every, func() { l.ended(message, e) })
	l.messages[message] = e
	return true
}

// ended is the end of an interval. The next one begins if there was anything in this one.
func (l *Limit) ended(message string, e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
	case l.countLocked(message, e):
		e.timer.Reset(l.every)
	default:
		delete(l.messages, message)
	}
}

// countLocked writes the line that counts, and reports whether there was anything to count. It
// writes under the lock, so that nothing is written after Close.
func (l *Limit) countLocked(message string, e *entry) bool {
	n, fields := e.repeated, e.fields
	if n == 0 {
		return false
	}
	e.repeated, e.fields = 0, nil
	write(l.log.WithLevel(e.level).Int("repeated", n).Str("within", l.every.String()), fields, message)
	return true
}

// Close writes what is counted. What comes after it is not limited.
func (l *Limit) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for message, e := range l.messages {
		e.timer.Stop()
		l.countLocked(message, e)
	}
	clear(l.messages)
	l.closed = true
}
