package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// progress is one line that tells how far the run is. Where it does not go to a terminal
// it becomes a line every few seconds.
type progress struct {
	to    io.Writer
	every time.Duration
	last  time.Time
	start string // of a line
	end   string
}

func newProgress(f *os.File) *progress {
	if _, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS); err == nil {
		return &progress{to: f, every: 200 * time.Millisecond, start: "\r\x1b[K"}
	}
	return &progress{to: f, every: 5 * time.Second, end: "\n"}
}

// stage says what begins.
func (p *progress) stage(format string, args ...any) { p.print(time.Now(), format, args) }

// show says how far it is, unless it just did.
func (p *progress) show(format string, args ...any) {
	if now := time.Now(); now.Sub(p.last) >= p.every {
		p.print(now, format, args)
	}
}

func (p *progress) print(now time.Time, format string, args []any) {
	p.last = now
	fmt.Fprintf(p.to, p.start+format+p.end, args...)
}

// clear takes the line away.
func (p *progress) clear() { fmt.Fprint(p.to, p.start) }
