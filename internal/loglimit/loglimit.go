// Package loglimit limits repeated warnings and errors in the log. The first one is logged at once.
// Further ones with the same message are counted for an interval, and one line at its end has the
// count.
//
// The samplers of zerolog see only the level of a line and not its message. With them, a burst of
// one message would hide all others, and the log would not have the count.
package loglimit

import (
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// Every is the interval that the programs use.
const Every = 10 * time.Second

// A Limit limits the warnings and errors of one log by message. Messages must be constants: each
// different message needs memory for an interval.
type Limit struct {
	log   zerolog.Logger
	every time.Duration

	mu       sync.Mutex // guards the fields below
	messages map[string]*entry
	closed   bool
}

// An entry is a message that was logged less than an interval ago.
type entry struct {
	level    zerolog.Level
	repeated int                  // count since the last line
	fields   func(*zerolog.Event) // adds the fields of the last warning; may be nil
	timer    *time.Timer
}

// New returns a Limit for log. The caller must call Close, which logs the remaining counts.
func New(log zerolog.Logger, every time.Duration) *Limit {
	return &Limit{log: log, every: every, messages: make(map[string]*entry)}
}

// Logger returns the log with limited warnings and errors. Other levels are not limited.
func (l *Limit) Logger() zerolog.Logger { return l.log.Hook(l) }

// Run implements zerolog.Hook.
func (l *Limit) Run(e *zerolog.Event, level zerolog.Level, message string) {
	if (level == zerolog.WarnLevel || level == zerolog.ErrorLevel) && !l.first(level, message, nil) {
		e.Discard()
	}
}

// Warn logs a warning with the same limit as Logger. The line with the count has the fields of the
// last warning, so fields may be called after Warn has returned. Nil means no fields.
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

// first reports whether to log a line now. If not, first counts it.
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

// ended ends an interval. If it had repeated messages, the next interval begins.
func (l *Limit) ended(message string, e *entry) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.closed:
	case l.logCountLocked(message, e):
		e.timer.Reset(l.every)
	default:
		delete(l.messages, message)
	}
}

// logCountLocked logs the line with the count, and reports whether the count was above zero. It
// logs under the lock, so that no such line follows Close.
func (l *Limit) logCountLocked(message string, e *entry) bool {
	n, fields := e.repeated, e.fields
	if n == 0 {
		return false
	}
	e.repeated, e.fields = 0, nil
	write(l.log.WithLevel(e.level).Int("repeated", n).Str("within", l.every.String()), fields, message)
	return true
}

// Close logs the remaining counts. Later lines are not limited.
func (l *Limit) Close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for message, e := range l.messages {
		e.timer.Stop()
		l.logCountLocked(message, e)
	}
	clear(l.messages)
	l.closed = true
}
