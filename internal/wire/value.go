package wire

import "unicode/utf8"

// ScanValue is the length of the JSON value that text begins with, and whether it is compact: without white space between
// its tokens. ok is false where there is none that is valid, UTF-8 and nested no deeper than MaxDepth: CompactData says
// what is wrong with it. One look at each byte does for all of this, where encoding/json, Valid and Compact, takes five
// times as long for each of the two.
func ScanValue(text []byte) (n int, compact, ok bool) {
	v := valueScanner{text: text, compact: true}
	if !v.value() || v.bits >= utf8.RuneSelf && !utf8.Valid(text[:v.at]) {
		return 0, false, false
	}
	return v.at, v.compact, true
}

// valueScanner is at a place of text.
type valueScanner struct {
	text    []byte
	at      int
	depth   int
	objects uint64 // of what is open around, the innermost last: a bit that says whether it is an object
	bits    byte   // all that were seen in strings
	compact bool
}

// value takes one value, with all that is nested in it.
func (v *valueScanner) value() bool {
	for ok := v.begin(); ok; ok = v.next() {
		if v.depth == 0 {
			return true
		}
	}
	return false
}

// next goes on behind a value within another, up to the end of the next one.
func (v *valueScanner) next() bool {
	inObject := v.objects&1 != 0
	switch c := v.peek(); {
	case c == ',' && inObject:
		v.at++
		return v.key() && v.begin()
	case c == ',':
		v.at++
		v.peek()
		return v.begin()
	case c == '}' && inObject, c == ']' && !inObject:
		v.close()
		return true
	}
	return false
}

// begin takes a value, of an object or a list only what leads to the end of the innermost first value in it.
func (v *valueScanner) begin() bool {
	for v.at < len(v.text) {
		switch c := v.text[v.at]; c {
		case '"':
			return v.string()
		case '{', '[':
			if !v.open(c == '{') {
				return false
			}
			if end := v.peek(); c == '{' && end == '}' || c == '[' && end == ']' {
				v.close()
				return true
			}
			if c == '{' && !v.key() {
				return false
			}
		case 't':
			return v.word("true")
		case 'f':
			return v.word("false")
		case 'n':
			return v.word("null")
		default:
			return v.number()
		}
	}
	return false
}

func (v *valueScanner) open(object bool) bool {
	if v.depth++; v.depth > MaxDepth {
		return false
	}
	v.objects <<= 1
	if object {
		v.objects |= 1
	}
	v.at++
	return true
}

func (v *valueScanner) close() {
	v.depth--
	v.objects >>= 1
	v.at++
}

// key takes a field's name, the colon, and what white space is around them.
func (v *valueScanner) key() bool {
	if v.peek() != '"' || !v.string() || v.peek() != ':' {
		return false
	}
	v.at++
	v.peek()
	return true
}

// peek skips white space, and is the byte behind it, 0 at the end.
func (v *valueScanner) peek() byte {
	for ; v.at < len(v.text); v.at++ {
		switch c := v.text[v.at]; c {
		case ' ', '\t', '\r', '\n':
			v.compact = false
		default:
			return c
		}
	}
	return 0
}

func (v *valueScanner) word(word string) bool {
	if len(v.text)-v.at < len(word) || string(v.text[v.at:v.at+len(word)]) != word {
		return false
	}
	v.at += len(word)
	return true
}

// string takes a string from its first quote on.
func (v *valueScanner) string() bool {
	bits, left := v.bits, v.text[v.at+1:]
	for i := 0; i < len(left); i++ {
		c := left[i]
		if bits |= c; !special[c] {
			continue
		}
		if c == '"' {
			v.at += i + 2
			v.bits = bits
			return true
		}
		n := escapeLength(left[i:])
		if n == 0 {
			return false
		}
		i += n - 1
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

func hexadecimal(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}

// number takes a number (RFC 8259 §6).
func (v *valueScanner) number() bool {
	v.skip('-')
	if !v.skip('0') && !v.digits() {
		return false
	}
	if v.skip('.') && !v.digits() {
		return false
	}
	if v.skip('e') || v.skip('E') {
		_ = v.skip('+') || v.skip('-')
		return v.digits()
	}
	return true
}

func (v *valueScanner) skip(c byte) bool {
	if v.at == len(v.text) || v.text[v.at] != c {
		return false
	}
	v.at++
	return true
}

// digits takes one at least.
func (v *valueScanner) digits() bool {
	from := v.at
	for v.at < len(v.text) && v.text[v.at] >= '0' && v.text[v.at] <= '9' {
		v.at++
	}
	return v.at > from
}

// AppendCompact appends a value that ScanValue took without the white space between its tokens.
func AppendCompact(dst, value []byte) []byte {
	quoted, from := false, 0
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			quoted = !quoted
		case quoted && c == '\\':
			i++
		case !quoted && (c == ' ' || c == '\t' || c == '\r' || c == '\n'):
			dst = append(dst, value[from:i]...)
			from = i + 1
		}
	}
	return append(dst, value[from:]...)
}
