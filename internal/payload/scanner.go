package payload

import "unicode/utf8"

// Scanner reads JSON (RFC 8259) in one pass over the bytes, without allocations. Each method
// skips white space before each token that it reads. If a method returns false, the text may still
// be valid JSON: the caller then uses encoding/json, which decides and returns the error. A pass of
// encoding/json takes five times as long.
type Scanner struct {
	text       []byte
	at         int
	depth      int    // how many lists and objects of a value are open
	outer      int    // how many lists and objects are open around a value, see Within
	objects    uint64 // one bit for each open level, the innermost in bit 0: 1 for an object, 0 for a list
	stringBits byte   // the bitwise OR of all bytes in strings: 0x80 or more if one is not ASCII
	compact    bool   // no white space was skipped
}

// NewScanner returns a Scanner at the start of text.
func NewScanner(text []byte) Scanner { return Scanner{text: text} }

// Within sets how many lists and objects are open around the values that Value, Raw and Values read
// from now on. They count for MaxDepth.
func (s *Scanner) Within(levels int) { s.outer = levels }

// Left returns how many bytes have not been read.
func (s *Scanner) Left() int { return len(s.text) - s.at }

// End skips white space and reports whether the text ends there.
func (s *Scanner) End() bool { return s.peek() == 0 && s.Left() == 0 }

// Take reads the byte c, which is not 0.
func (s *Scanner) Take(c byte) bool {
	if s.peek() != c {
		return false
	}
	s.at++
	return true
}

// Field reads prefix, which is a brace or a comma, then the name of a field and a colon. The name
// shares the memory of the text.
func (s *Scanner) Field(prefix byte) (name []byte, ok bool) {
	if !s.Take(prefix) {
		return nil, false
	}
	if name, ok = s.Text(); !ok || !s.Take(':') {
		return nil, false
	}
	return name, true
}

// Text reads a string of UTF-8 without escapes. It shares the memory of the text.
func (s *Scanner) Text() (text []byte, ok bool) {
	if s.peek() != '"' {
		return nil, false
	}
	from := s.at + 1
	s.stringBits = 0
	end := s.skipPlain(from)
	if end == len(s.text) || s.text[end] != '"' {
		return nil, false
	}
	if text = s.text[from:end]; s.stringBits >= utf8.RuneSelf && !utf8.Valid(text) {
		return nil, false
	}
	s.at = end + 1
	return text, true
}

// Integer reads a number of at most 18 digits without sign, fraction and exponent. Integers are
// inside objects, so it refuses one at the end of the text.
func (s *Scanner) Integer() (v int64, ok bool) {
	s.peek()
	from := s.at
	for ; s.at < len(s.text) && isDigit(s.text[s.at]); s.at++ {
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

// Value reads any value of UTF-8 that is nested no deeper than MaxDepth, see Within. compact
// reports that there is no white space between its tokens. The value shares the memory of the text.
func (s *Scanner) Value() (value []byte, compact, ok bool) {
	s.peek()
	from := s.at
	s.depth, s.stringBits, s.compact = 0, 0, true
	for ok = s.begin(); ok && s.depth > 0; {
		ok = s.next()
	}
	if value = s.text[from:s.at]; !ok || s.stringBits >= utf8.RuneSelf && !utf8.Valid(value) {
		return nil, false, false
	}
	return value, s.compact, true
}

// next reads the next value of the innermost open list or object, with the comma before it, or the
// closing bracket.
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

// begin reads a value. If the value is a list or an object, begin opens it and reads only its first
// value, which may be a list or an object, too.
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
	if s.depth++; s.depth+s.outer > MaxDepth {
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

// key reads the name of a field and the colon, with the white space around them.
func (s *Scanner) key() bool {
	if s.peek() != '"' || !s.string() || s.peek() != ':' {
		return false
	}
	s.at++
	s.peek()
	return true
}

// peek skips white space and returns the next byte, or 0 at the end.
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

// skipPlain returns the index of the first special byte at or after i. It adds the bytes before it
// to stringBits.
func (s *Scanner) skipPlain(i int) int {
	text, bits := s.text, s.stringBits
	for ; i < len(text) && !special[text[i]]; i++ {
		bits |= text[i]
	}
	s.stringBits = bits
	return i
}

// string reads a string that starts with the next byte.
func (s *Scanner) string() bool {
	for i := s.skipPlain(s.at + 1); i < len(s.text); i = s.skipPlain(i) {
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

// special are the bytes that a string cannot contain as they are.
var special = func() (is [256]bool) {
	for c := range byte(' ') {
		is[c] = true
	}
	is['"'], is['\\'] = true, true
	return is
}()

// escapeLength returns the length of the escape sequence at the start of text, or 0 if there is
// none.
func escapeLength(text []byte) int {
	if len(text) < 2 || text[0] != '\\' { // a control character
		return 0
	}
	switch text[1] {
	case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
		return 2
	case 'u':
		for i := 2; i < 6; i++ {
			if i >= len(text) || !isHex(text[i]) {
				return 0
			}
		}
		return 6
	}
	return 0
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isHex(c byte) bool { return isDigit(c) || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F' }

// number reads a number (RFC 8259 §6).
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

// skip reads the byte c, if it is the next one. Unlike Take, it does not skip white space.
func (s *Scanner) skip(c byte) bool {
	if s.at == len(s.text) || s.text[s.at] != c {
		return false
	}
	s.at++
	return true
}

// digits reads one or more digits.
func (s *Scanner) digits() bool {
	from := s.at
	for s.at < len(s.text) && isDigit(s.text[s.at]) {
		s.at++
	}
	return s.at > from
}

// AppendCompact appends a value that [Scanner.Value] returned, without the white space between its
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

// StringEnd returns the index of the quote that closes the string whose opening quote is text[i],
// or len(text) if there is none. It does not check the string.
func StringEnd(text []byte, i int) int {
	for i++; i < len(text) && text[i] != '"'; i++ {
		if text[i] == '\\' {
			i++
		}
	}
	return min(i, len(text))
}
