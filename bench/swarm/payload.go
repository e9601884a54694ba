package swarm

import (
	"bytes"
	"strconv"
	"time"
)

// PayloadSize is the length of a numbered payload in bytes.
const PayloadSize = 90

// The pieces of a numbered payload, {"n":…,"t":…,"text":"aaaa…"}.
var (
	numberHead = []byte(`{"n":`)
	timeHead   = []byte(`,"t":`)
	textHead   = []byte(`,"text":"`)
	textTail   = append(bytes.Repeat([]byte("a"), PayloadSize), `"}`...)
)

// AppendPayload appends the numbered payload: n counts the messages of a run, at is when
// it was to be sent on the clock of [Now], 0 where nobody measures that.
func AppendPayload(dst []byte, n, at int64) []byte {
	start := len(dst)
	dst = strconv.AppendInt(append(dst, numberHead...), n, 10)
	dst = strconv.AppendInt(append(dst, timeHead...), at, 10)
	dst = append(dst, textHead...)
	fill := max(PayloadSize-(len(dst)-start), len(`"}`))
	return append(dst, textTail[len(textTail)-fill:]...)
}

// parsePayload reads what AppendPayload wrote; anything else, be it one byte, is not ok.
func parsePayload(p []byte) (n, at int64, ok bool) {
	size := len(p)
	if n, p, ok = number(p, numberHead); !ok {
		return 0, 0, false
	}
	if at, p, ok = number(p, timeHead); !ok {
		return 0, 0, false
	}
	rest, ok := bytes.CutPrefix(p, textHead)
	return n, at, ok && size == PayloadSize && bytes.HasSuffix(textTail, rest) && len(rest) >= len(`"}`)
}

// number reads head and the digits behind it.
func number(p, head []byte) (n int64, rest []byte, ok bool) {
	rest, ok = bytes.CutPrefix(p, head)
	digits := 0
	for digits < len(rest) && digits < 18 && '0' <= rest[digits] && rest[digits] <= '9' {
		n = n*10 + int64(rest[digits]-'0')
		digits++
	}
	return n, rest[digits:], ok && digits > 0
}

var start = time.Now()

// Now is nanoseconds on a clock of this process, which is never set back.
func Now() int64 { return int64(time.Since(start)) }
