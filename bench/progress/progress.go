// Package progress tells whoever waits for a measurement how far it is.
package progress

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// Line is one line that tells how far the run is. Where it does not go to a terminal
// it becomes a line every few seconds. It may be used from anywhere.
type Line struct {
	every time.Duration
	start string // of a line
	end   string

	mu   sync.Mutex // guards the fields below
	to   io.Writer
	last time.Time
}

// New makes the line on f.
func New(f *os.File) *Line {
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err == nil {
		return &Line{to: f, every: 200 * time.Millisecond, start: "\r\x1b[K"}
	}
	return &Line{to: f, every: 5 * time.Second, end: "\n"}
}

// Stage says what begins.
func (p *Line) Stage(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.printLocked(time.Now(), format, args)
}

// Show says how far it is, unless it just did.
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

// Clear takes the line away.
func (p *Line) Clear() {
	p.mu.Lock()
	defer p.mu.Unlock()
	fmt.Fprint(p.to, p.start)
}
