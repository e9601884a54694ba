// Package progress shows the progress of a measurement.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Line is a progress line on a terminal. If the output is not a terminal, it is a log with a line
// every few seconds. Its methods may be called concurrently.
type Line struct {
	every time.Duration
	start string // printed before each line
	end   string // printed after each line

	mu   sync.Mutex // guards the fields below
	to   io.Writer
	last time.Time
}

// New returns a Line on f.
func New(f *os.File) *Line {
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err == nil {
		return &Line{to: f, every: 200 * time.Millisecond, start: "\r\x1b[K"}
	}
	return &Line{to: f, every: 5 * time.Second, end: "\n"}
}

// Stage shows a new stage.
func (p *Line) Stage(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printLocked(time.Now(), format, args)
}

// Show updates the line, at most once per interval.
func (p *Line) Show(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if now := time.Now(); now.Sub(p.last) >= p.every {
		p.printLocked(now, format, args)
	}
}

func (p *Line) printLocked(now time.Time, format string, args []any) {
	p.last = now
	fmt.Fprintf(p.to, p.start+format+p.end, args...)
}

// Clear removes the line.
func (p *Line) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprint(p.to, p.start)
}
