package screen

import (
	"bytes"
	"os"

	"golang.org/x/term"
)

// The sequences for pictures that replace each other (xterm, "Private Modes"): the alternate
// screen, without a cursor, and without wrapping of long lines.
const (
	enterLive = "\x1b[?1049h\x1b[?25l\x1b[?7l"
	leaveLive = "\x1b[?7h\x1b[?25h\x1b[?1049l"
)

// Live prepares a terminal for Draw. The result restores the terminal.
func (s *Screen) Live() (restore func()) {
	s.write(enterLive)
	return func() { s.write(leaveLive) }
}

// Draw replaces the picture on the terminal by what f prints, without flicker: it overwrites the
// old one, and removes the rest of each line. f receives the number of lines of the terminal.
func (s *Screen) Draw(f func(height int)) {
	var picture bytes.Buffer
	height := s.height()
	s.mu.Lock()
	out := s.out
	s.out = &picture
	s.mu.Unlock()
	f(height)
	s.mu.Lock()
	s.out = out
	s.mu.Unlock()
	lines := bytes.ReplaceAll(picture.Bytes(), []byte("\n"), []byte("\x1b[K\n"))
	s.write("\x1b[H" + string(lines) + "\x1b[J")
}

// height returns the number of lines of the terminal, 24 if it is not known.
func (s *Screen) height() int {
	if f, ok := s.out.(*os.File); ok {
		if _, height, err := term.GetSize(int(f.Fd())); err == nil && height > 0 {
			return height
		}
	}
	return 24
}
