package fastpush

import (
	"bytes"
)

// maxHead is the longest head of a simple request, in bytes.
const maxHead = 4 << 10

// maxDigits is the most digits of a Content-Length.
const maxDigits = 9

// head is the parsed head of a simple request.
type head struct {
	path          string // one of Options.Paths
	host          []byte // the header's value
	authorization []byte // the header's value; empty without one
	headSize      int    // bytes
	bodySize      int    // bytes; the header Content-Length
}

// form says whether this package can answer a request.
type form int

const (
	notSimple form = iota // net/http must answer it
	partial               // the head is not complete
	simple                // this package can answer it
)

// parseHead parses the head of the request at the beginning of text. If the form is simple,
// net/http parses the same request from text; a fuzz test compares the two.
func parseHead(text []byte, paths []string) (h head, f form) {
	const method = "POST "
	if n := min(len(text), len(method)); string(text[:n]) != method[:n] {
		return head{}, notSimple
	}
	end := bytes.Index(text[:min(len(text), maxHead)], []byte("\r\n\r\n"))
	if end < 0 {
		if len(text) >= maxHead || bareLF(text) {
			return head{}, notSimple
		}
		return head{}, partial
	}
	h.headSize = end + len("\r\n\r\n")
	rest, ok := h.target(text[len(method):end+len("\r\n")], paths)
	var seen seenFields
	for ok && len(rest) > 0 {
		rest, ok = h.field(rest, &seen)
	}
	if !ok || !seen.host || !seen.length {
		return head{}, notSimple
	}
	return h, simple
}

// bareLF reports whether a line of text ends in LF alone. net/http accepts that as the end of a
// line and of a head (RFC 9112 §2.2), so waiting for CR LF CR LF might never end.
func bareLF(text []byte) bool {
	for {
		end := bytes.IndexByte(text, '\n')
		if end < 0 {
			return false
		}
		if end == 0 || text[end-1] != '\r' {
			return true
		}
		text = text[end+1:]
	}
}

// target parses the rest of the request line.
func (h *head) target(text []byte, paths []string) (rest []byte, ok bool) {
	for _, path := range paths {
		if rest, ok = cut(text, path); ok {
			if rest, ok = cut(rest, " HTTP/1.1\r\n"); ok {
				h.path = path
				return rest, true
			}
		}
	}
	return nil, false
}

func cut(text []byte, prefix string) (rest []byte, ok bool) {
	if len(text) < len(prefix) || string(text[:len(prefix)]) != prefix {
		return text, false
	}
	return text[len(prefix):], true
}

// seenFields records the headers that may occur only once.
type seenFields struct{ host, length, authorization bool }

// field parses one header line.
func (h *head) field(text []byte, seen *seenFields) (rest []byte, ok bool) {
	n := 0
	for n < len(text) && isTokenChar[text[n]] {
		n++
	}
	if n == 0 || n == len(text) || text[n] != ':' { // a folded line, or white space before the colon
		return nil, false
	}
	name, text := text[:n], text[n+1:]
	for n = 0; n < len(text) && (text[n] >= ' ' && text[n] <= '~' || text[n] == '\t'); n++ {
	}
	if rest, ok = cut(text[n:], "\r\n"); !ok { // a control character, or not ASCII
		return nil, false
	}
	return rest, h.setField(name, bytes.Trim(text[:n], " \t"), seen)
}

// setField stores the value of a header. ok is false if this package cannot answer a request with
// it.
func (h *head) setField(name, value []byte, seen *seenFields) (ok bool) {
	switch {
	case equalFold(name, "host"):
		ok = !seen.host && plainHost(value)
		seen.host, h.host = true, value
	case equalFold(name, "content-length"):
		ok = !seen.length
		seen.length = true
		var number bool
		h.bodySize, number = decimal(value)
		ok = ok && number
	case equalFold(name, "authorization"):
		ok = !seen.authorization
		seen.authorization, h.authorization = true, value
	case equalFold(name, "connection"):
		ok = equalFold(value, "keep-alive")
	default:
		ok = ignorable(name)
	}
	return ok
}

// ignorable reports whether a header has no effect on a push. A request with any other header goes
// to net/http, whose handlers may use it, now or in the future.
func ignorable[Text ~[]byte | ~string](name Text) bool {
	if len(name) == 0 {
		return false
	}
	switch name[0] {
	case 'u', 'U':
		return equalFold(name, "user-agent")
	case 'c', 'C':
		return equalFold(name, "content-type")
	case 'a', 'A':
		return equalFold(name, "accept") || equalFold(name, "accept-encoding") || equalFold(name, "accept-language") || equalFold(name, "accept-charset")
	case 't', 'T':
		return equalFold(name, "traceparent")
	}
	return false
}

// allowed reports whether a simple request may have the header, which net/http has parsed.
func allowed(name, value string) bool {
	switch {
	case equalFold(name, "connection"):
		return equalFold(value, "keep-alive")
	case equalFold(name, "authorization"), equalFold(name, "content-length"):
		return true
	}
	return ignorable(name)
}

// equalFold compares name with lower, which is in lower case, without regard to ASCII case.
func equalFold[Text ~[]byte | ~string](name Text, lower string) bool {
	if len(name) != len(lower) {
		return false
	}
	for i := range len(name) {
		c := name[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

func decimal(text []byte) (n int, ok bool) {
	for _, c := range text {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, len(text) >= 1 && len(text) <= maxDigits
}

func plainHost(host []byte) bool {
	for _, c := range host {
		if !alphanumeric(c) && !bytes.ContainsRune([]byte(".-_:[]"), rune(c)) {
			return false
		}
	}
	return len(host) > 0
}

func alphanumeric(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
}

// isTokenChar marks the bytes of a header's name (RFC 9110 §5.6.2).
var isTokenChar = func() (is [256]bool) {
	for c := range byte(128) {
		is[c] = alphanumeric(c) || bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) >= 0
	}
	return is
}()
