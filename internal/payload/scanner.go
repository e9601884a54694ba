package payload

import "unicode/utf8"

// Scanner reads JSON (RFC 8259) in one pass over the bytes, without memory of its own. Each method
// takes one token, and white space before it, and is false for anything else. Then the text may
// still be right: encoding/json judges it, and words the error. It takes five times as long for
// each of its passes.
type Scanner struct {
	text    []byte
	at      int
	depth   int    // of the lists and objects that are open
	objects uint64 // a bit for each of them, the innermost last: whether it is an object
	bits    byte   // or of all bytes in strings
	compact bool   // no white space was skipped
}

// NewScanner returns a Scanner at the start of text.
func NewScanner(text []byte) Scanner { return Scanner{text: text} }

// Left is how many bytes are left.
func (s *Scanner) Left() int { return len(s.text) - s.at }

// End says whether only white space is left.
func (s *Scanner) End() bool { return s.peek() == 0 && s.Left() == 0 }

// Take takes c, which is not 0.
func (s *Scanner) Take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// Field takes the name of a field between before, a brace or a comma, and a colon. The name aliases
// the text.
func (s *Scanner) Field(before byte) (name []byte, ok bool) {
	if !s.Take(before) {
		return nil, false
	}
	if name, ok = s.Text(); !ok || !s.Take(':') {
		return nil, false
	}
	return name, true
}

// Text takes a string without escapes, which is UTF-8. It aliases the text.
func (s *Scanner) Text() (text []byte, ok bool) {
	if s.peek() != '"' {
		return nil, false
	}
	from := s.at + 1
	s.bits = 0
	end := s.plain(from)
	if end == len(s.text) || s.text[end] != '"' {
		return nil, false
	}
	if text = s.text[from:end]; s.bits >= utf8.RuneSelf && !utf8.Valid(text) {
		return nil, false
	}
	s.at = end + 1
	return text, true
}

// Integer takes a number of at most 18 digits without sign, fraction or exponent.
func (s *Scanner) Integer() (v int64, ok bool) {
	s.peek()
	from := s.at
	for ; s.at < len(s.text) && digit(s.text[s.at]); s.at++ {
		if s.at-from == 18 {
			return 0, false
		}
		v = v*10 + int64(s.text[s.at]-'0')
	}
	n := s.at - from
	if n == 0 || n > 1 && s.text[from] == '0' || s.at == len(s.text) {
		return 0, false
	}
	c := s.text[s.at]
	return v, c != '.' && c != 'e' && c != 'E'
}

// Value takes any value that is UTF-8 and nested no deeper than MaxDepth. compact says whether
// there is no white space between its tokens. The value aliases the text.
func (s *Scanner) Value() (value []byte, compact, ok bool) {
	s.peek()
	from := s.at
	s.depth, s.bits, s.compact = 0, 0, true
	for ok = s.begin(); ok && s.depth > 0; {
		ok = s.next()
	}
	if value = s.text[from:s.at]; !ok || s.bits >= utf8.RuneSelf && !utf8.Valid(value) {
		return nil, false, false
	}
	return value, s.compact, true
}

// next takes what follows a value in a list or an object, up to the end of the next value.
func (s *Scanner) next() bool {
	inObject := s.objects&1 != 0
	switch c := s.peek(); {
	case c == ',' && inObject:
		s.at++
		return s.key() && s.begin()
	case c == ',':
		s.at++
		s.peek()
		return s.begin()
	case c == '}' && inObject, c == ']' && !inObject:
		s.close()
		return true
	}
	return false
}

// begin takes a value. Of a list or an object it takes only the beginning, up to the end of the
// innermost first value.
func (s *Scanner) begin() bool {
	for s.at < len(s.text) {
		switch c := s.text[s.at]; c {
		case '"':
			return s.string()
		case '{', '[':
			if !s.open(c == '{') {
				return false
			}
			if end := s.peek(); c == '{' && end == '}' || c == '[' && end == ']' {
				s.close()
				return true
			}
			if c == '{' && !s.key() {
				return false
			}
		case 't':
			return s.word("true")
		case 'f':
			return s.word("false")
		case 'n':
			return s.word("null")
		default:
			return s.number()
		}
	}
	return false
}

func (s *Scanner) open(object bool) bool {
	if s.depth++; s.depth > MaxDepth {
		return false
	}
	s.objects <<= 1
	if object {
		s.objects |= 1
	}
	s.at++
	return true
}

func (s *Scanner) close() {
	s.depth--
	s.objects >>= 1
	s.at++
}

// key takes the name of a field and the colon, with the white space around them.
func (s *Scanner) key() bool {
	if s.peek() != '"' || !s.string() || s.peek() != ':' {
		return false
	}
	s.at++
	s.peek()
	return true
}

// peek skips white space. It returns the next byte, 0 at the end.
func (s *Scanner) peek() byte {
	if s.at < len(s.text) && s.text[s.at] > ' ' {
		return s.text[s.at]
	}
	return s.skipSpace()
}

func (s *Scanner) skipSpace() byte {
	for ; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; c {
		case ' ', '\t', '\r', '\n':
			s.compact = false
		default:
			return c
		}
	}
	return 0
}

func (s *Scanner) word(word string) bool {
	if s.Left() < len(word) || string(s.text[s.at:s.at+len(word)]) != word {
		return false
	}
	s.at += len(word)
	return true
}

// plain is the end of the plain part of a string that begins at i. It adds its bytes to bits.
func (s *Scanner) plain(i int) int {
	text, bits := s.text, s.bits
	for ; i < len(text) && !special[text[i]]; i++ {
		bits |= text[i]
	}
	s.bits = bits
	return i
}

// string takes a string from its opening quote on.
func (s *Scanner) string() bool {
	for i := s.plain(s.at + 1); i < len(s.text); i = s.plain(i) {
		if s.text[i] == '"' {
			s.at = i + 1
			return true
		}
		n := escapeLength(s.text[i:])
		if n == 0 {
			return false
		}
		i += n
	}
	return false
}

// special is what ends the plain part of a string.
var special = func() (is [256]bool) {
	for c := range byte(' ') {
		is[c] = true
	}
	is['"'], is['\\'] = true, true
	return is
}()

// escapeLength is the length of the escape that text begins with, 0 if it is none.
func escapeLength(text []byte) int {
	if len(text) < 2 || text[0] != '\\' { // a control character
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		for i := 2; i < 6; i++ {
			if i >= len(text) || !hexadecimal(text[i]) {
				return 0
			}
		}
		return 6
	}
	return 0
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

func hexadecimal(c byte) bool { return digit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// number takes a number (RFC 8259 §6).
func (s *Scanner) number() bool {
	s.skip('-')
	if !s.skip('0') && !s.digits() {
		return false
	}
	if s.skip('.') && !s.digits() {
		return false
	}
	if s.skip('e') || s.skip('E') {
		_ = s.skip('+') || s.skip('-')
		return s.digits()
	}
	return true
}

func (s *Scanner) skip(c byte) bool {
	if s.at == len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

// digits takes one at least.
func (s *Scanner) digits() bool {
	from := s.at
	for s.at < len(s.text) && digit(s.text[s.at]) {
		s.at++
	}
	return s.at > from
}

// AppendCompact appends a value that [Scanner.Value] took, without the white space between its
// tokens.
func AppendCompact(dst, value []byte) []byte {
	from := 0
	for i := 0; i < len(value); i++ {
		switch value[i] {
		case '"':
			i = StringEnd(value, i)
		case ' ', '\t', '\r', '\n':
			dst = append(dst, value[from:i]...)
			from = i + 1
		}
	}
	return append(dst, value[from:]...)
}

// StringEnd is the index of the quote that closes the string whose opening quote is text[i], or
// len(text) without one. It does not check the string.
func StringEnd(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return min(i, len(text))
}
