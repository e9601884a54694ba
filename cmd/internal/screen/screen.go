// Package screen prints results for people and for programs: tables with colours on a terminal,
// tab-separated lines elsewhere, or JSON.
package screen

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-isatty"
)

// Screen prints to one writer. Its methods may be called concurrently: each call writes once.
type Screen struct {
	JSON     bool // print JSON
	Terminal bool // the reader is a person
	Colors   bool

	mu  sync.Mutex // guards out and err
	out io.Writer
	err error // the first error of out
}

// New returns a Screen for out. color is "always", "never" or "auto", which means colours on a
// terminal, unless the environment has NO_COLOR (no-color.org) or TERM=dumb. getenv is like
// os.Getenv.
func New(out io.Writer, asJSON bool, color string, getenv func(string) string) *Screen {
	s := &Screen{JSON: asJSON, Terminal: !asJSON && IsTerminal(out), out: out}
	if s.Terminal {
		enableSequences(out.(*os.File))
	}
	s.Colors = color == "always" || color != "never" && s.Terminal && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
	return s
}

// IsTerminal reports whether a reader or writer is a terminal.
func IsTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && isatty.IsTerminal(f.Fd())
}

// Err returns the first error of a write, such as a closed pipe.
func (s *Screen) Err() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

func (s *Screen) write(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.err == nil {
		_, s.err = io.WriteString(s.out, text)
	}
}

// Value prints v as one line of JSON if the Screen prints JSON, and calls print otherwise.
func (s *Screen) Value(v any, print func()) {
	if !s.JSON {
		print()
		return
	}
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		s.mu.Lock()
		s.err = err
		s.mu.Unlock()
		return
	}
	s.write(b.String())
}

// Line prints a line of cells: with spaces in between on a terminal, with tabs elsewhere.
func (s *Screen) Line(cells ...Cell) {
	separator := "\t"
	if s.Terminal {
		separator = " "
	}
	var b strings.Builder
	for i, c := range cells {
		if i > 0 {
			b.WriteString(separator)
		}
		b.WriteString(s.paint(c, Clean(c.Text)))
	}
	s.write(b.String() + "\n")
}

// Text prints lines for people as they are.
func (s *Screen) Text(format string, args ...any) {
	s.write(Clean(fmt.Sprintf(format, args...)) + "\n")
}

// Table prints rows. On a terminal it has a header and aligned columns. Elsewhere it has neither,
// and tabs in between.
func (s *Screen) Table(header []string, rows [][]Cell) {
	var b strings.Builder
	if !s.Terminal {
		for _, row := range rows {
			for i, c := range row {
				if i > 0 {
					b.WriteByte('\t')
				}
				b.WriteString(Clean(c.Text))
			}
			b.WriteByte('\n')
		}
		s.write(b.String())
		return
	}
	first := make([]Cell, len(header))
	for i, name := range header {
		first[i] = Cell{Text: strings.ToUpper(name), Color: Bold}
	}
	rows = append([][]Cell{first}, rows...)
	widths := make([]int, len(header))
	for _, row := range rows {
		for i, c := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(Clean(c.Text)))
		}
	}
	for _, row := range rows {
		for i, c := range row {
			text := Clean(c.Text)
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
			switch {
			case i == len(row)-1 && !c.Right:
				b.WriteString(s.paint(c, text))
			case c.Right:
				b.WriteString(pad + s.paint(c, text))
			default:
				b.WriteString(s.paint(c, text) + pad)
			}
			if i < len(row)-1 {
				b.WriteString("  ")
			}
		}
		b.WriteByte('\n')
	}
	s.write(b.String())
}

// Pairs prints names and values, without the empty ones.
func (s *Screen) Pairs(pairs ...string) {
	width := 0
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			width = max(width, len(pairs[i]))
		}
	}
	var b strings.Builder
	for i := 0; i+1 < len(pairs); i += 2 {
		name, value := pairs[i], Clean(pairs[i+1])
		switch {
		case value == "":
		case s.Terminal:
			fmt.Fprintf(&b, "%s%s  %s\n", s.paint(Cell{Color: Dim}, name), strings.Repeat(" ", width-len(name)), value)
		default:
			fmt.Fprintf(&b, "%s\t%s\n", name, value)
		}
	}
	s.write(b.String())
}

// Cell is a text with a colour.
type Cell struct {
	Text  string
	Color Color
	Right bool // align to the right, for numbers
}

// Color is the parameter of an SGR sequence (ECMA-48 §8.3.117).
type Color string

// The colours.
const (
	Plain  Color = ""
	Bold   Color = "1"
	Dim    Color = "2"
	Red    Color = "31"
	Green  Color = "32"
	Yellow Color = "33"
	Cyan   Color = "36"
)

// Number returns a cell with a number.
func Number[N ~int | ~int64](n N) Cell { return Cell{Text: fmt.Sprint(n), Right: true} }

func (s *Screen) paint(c Cell, text string) string {
	if !s.Colors || c.Color == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(c.Color) + "m" + text + "\x1b[0m"
}

// Clean replaces characters that could control a terminal or end a line by escapes like \u009b.
// Tabs become spaces.
func Clean(text string) string {
	if !slices.ContainsFunc([]rune(text), unsafe) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case r == '\t':
			b.WriteByte(' ')
		case unsafe(r):
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// unsafe reports whether a character is not printable, or changes the direction of text.
func unsafe(r rune) bool { return r != ' ' && !unicode.IsPrint(r) && r != utf8.RuneError }
