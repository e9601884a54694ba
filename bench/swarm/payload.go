package swarm

import (
	"bytes"
	"strconv"
	"time"
)

// PayloadSize is the length of a numbered payload in bytes, if [Options] names no other.
const PayloadSize = 90

// The lengths of the shortest numbered payload, in which all numbers fit, and of the longest.
const MinPayload, MaxPayload = 60, 32 << 10

// The parts of a numbered payload, {"n":…,"t":…,"text":"aaaa…"}.
var (
	numberHead = []byte(`{"n":`)
	timeHead   = []byte(`,"t":`)
	textHead   = []byte(`,"text":"`)
	textTail   = append(bytes.Repeat([]byte("a"), MaxPayload), `"}`...)
)

// AppendPayload appends a numbered payload. n is the number of the message in the run. at is the
// time when it was due on the clock of [Now], 0 if latency is not measured.
func AppendPayload(dst []byte, n, at int64) []byte { return AppendSized(dst, PayloadSize, n, at) }

// AppendSized is AppendPayload with a size between [MinPayload] and [MaxPayload], in bytes.
func AppendSized(dst []byte, size int, n, at int64) []byte {
	start := len(dst)
	dst = strconv.AppendInt(append(dst, numberHead...), n, 10)
	dst = strconv.AppendInt(append(dst, timeHead...), at, 10)
	dst = append(dst, textHead...)
	fill := max(size-(len(dst)-start), len(`"}`))
	return append(dst, textTail[len(textTail)-fill:]...)
}

// parsePayload parses a payload of AppendSized. ok is false if p differs from such a payload in any
// byte but the digits of n and at.
func parsePayload(p []byte, size int) (n, at int64, ok bool) {
	length := len(p)
	if n, p, ok = parseNumber(p, numberHead); !ok {
		return 0, 0, false
	}
	if at, p, ok = parseNumber(p, timeHead); !ok {
		return 0, 0, false
	}
	rest, ok := bytes.CutPrefix(p, textHead)
	return n, at, ok && length == size && bytes.HasSuffix(textTail, rest) && len(rest) >= len(`"}`)
}

// parseNumber parses head and the digits after it.
func parseNumber(p, head []byte) (n int64, rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(p, head)
	digits := 0
	for digits < len(rest) && digits < 18 && '0' <= rest[digits] && rest[digits] <= '9' {
		n = n*10 + int64(rest[digits]-'0')
		digits++
	}
	return n, rest[digits:], ok && digits > 0
}

var start = time.Now()

// Now returns nanoseconds on a monotonic clock of this process.
func Now() int64 { return int64(time.Since(start)) }
