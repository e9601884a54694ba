package fastpush

import (
	"bytes"
)

// maxHead is the longest head of a plain request. Longer ones are net/http's.
const maxHead = 4 << 10

// maxDigits are those of a Content-Length.
const maxDigits = 9

// head is that of a plain request.
type head struct {
	path          string // one of the known
	host          []byte // the header's value
	authorization []byte // the header's value; empty without one
	size          int    // bytes of the head itself
	length        int    // bytes of the body
}

type verdict int

const (
	other   verdict = iota // net/http must see it
	partial                // more must be read
	plain
)

// readHead reads the head of a request that text begins with. What is plain net/http takes for the same request:
// a fuzz test holds the two together.
func readHead(text []byte, paths []string) (h head, v verdict) {
	const method = "POST "
	if n := min(len(text), len(method)); string(text[:n]) != method[:n] {
		return head{}, other
	}
	end := bytes.Index(text[:min(len(text), maxHead)], []byte("\r\n\r\n"))
	if end < 0 {
		if len(text) >= maxHead || bareLF(text) {
			return head{}, other
		}
		return head{}, partial
	}
	h.size = end + len("\r\n\r\n")
	rest, ok := h.target(text[len(method):end+len("\r\n")], paths)
	var seen fields
	for ok && len(rest) > 0 {
		rest, ok = h.field(rest, &seen)
	}
	if !ok || !seen.host || !seen.length {
		return head{}, other
	}
	return h, plain
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

// target takes the rest of the first line.
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

// fields are the headers that may come only once.
type fields struct{ host, length, authorization bool }

// field takes one header line.
func (h *head) field(text []byte, seen *fields) (rest []byte, ok bool) {
	n := 0
	for n < len(text) && token[text[n]] {
		n++
	}
	if n == 0 || n == len(text) || text[n] != ':' { // a folded line, or white space before the colon
		return nil, false
	}
	name, text := text[:n], text[n+1:]
	for n = 0; n < len(text) && (text[n] >= ' ' && text[n] <= '~' || text[n] == '\t'); n++ {
	}
	if rest, ok = cut(text[n:], "\r\n"); !ok { // a control character, or beyond ASCII
		return nil, false
	}
	return rest, h.means(name, bytes.Trim(text[:n], " \t"), seen)
}

// means takes what a header says; ok is false where that is not for this package.
func (h *head) means(name, value []byte, seen *fields) (ok bool) {
	switch {
	case is(name, "host"):
		ok = !seen.host && plainHost(value)
		seen.host, h.host = true, value
	case is(name, "content-length"):
		ok = !seen.length
		seen.length = true
		var number bool
		h.length, number = decimal(value)
		ok = ok && number
	case is(name, "authorization"):
		ok = !seen.authorization
		seen.authorization, h.authorization = true, value
	case is(name, "connection"):
		ok = is(value, "keep-alive")
	default:
		ok = harmless(name)
	}
	return ok
}

// harmless says whether a header changes nothing about a push. Any header that is not named here is
// for net/http, and for the handlers there: some mean something to them, and others may one day.
func harmless[Text ~[]byte | ~string](name Text) bool {
	if len(name) == 0 {
		return false
	}
	switch name[0] {
	case 'u', 'U':
		return is(name, "user-agent")
	case 'c', 'C':
		return is(name, "content-type")
	case 'a', 'A':
		return is(name, "accept") || is(name, "accept-encoding") || is(name, "accept-language") || is(name, "accept-charset")
	case 't', 'T':
		return is(name, "traceparent")
	}
	return false
}

// allowed says whether a push with that header, which net/http has read, is one for this package.
func allowed(name, value string) bool {
	switch {
	case is(name, "connection"):
		return is(value, "keep-alive")
	case is(name, "authorization"), is(name, "content-length"):
		return true
	}
	return harmless(name)
}

// is compares name with one in lower case; letters of ASCII have no case.
func is[Text ~[]byte | ~string](name Text, lower string) bool {
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

// token is what a header's name consists of (RFC 9110 §5.6.2).
var token = func() (is [256]bool) {
	for c := range byte(128) {
		is[c] = alphanumeric(c) || bytes.IndexByte([]byte("!#$%&'*+-.^_`|~"), c) >= 0
	}
	return is
}()
