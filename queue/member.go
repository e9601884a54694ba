package queue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// maxID is the highest integer below which a double counts one by one.
const maxID = 1<<53 - 1

// epochMS is 2020-01-01 UTC, where ids begin, in Unix milliseconds. The scripts spell it out.
const epochMS = 1577836800000

// idsPerMS is how many ids fit in a millisecond.
const idsPerMS = 4096

var errMalformed = errors.New("not <id>:<json>")

// IDAt is the lowest id that a queue gives at that moment, unless it is ahead of the clock.
func IDAt(t time.Time) int64 { return max(0, (t.UnixMilli()-epochMS)*idsPerMS) }

// nextID is the id, or generation, that follows last at a moment in Unix milliseconds.
func nextID(nowMS, last int64) int64 {
	return max((nowMS-epochMS)*idsPerMS, last+1)
}

// DecodeMember reads a message as Redis holds it: <id>:<json>, the id so that equal
// payloads stay two messages. The id must be positive, below 2^53 and
// in its one spelling; the rest one JSON value without control characters, since transports put it
// into lines as it is; or a marker, see [Loss].
func DecodeMember(member string) (Message, error) {
	digits, data, found := strings.Cut(member, ":")
	if !found {
		return Message{}, fmt.Errorf("%w: no colon", errMalformed)
	}
	id, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || id < 1 || id > maxID || digits[0] == '0' || digits[0] == '+' {
		return Message{}, fmt.Errorf("%w: bad id", errMalformed)
	}
	for i := range len(data) {
		if data[i] < ' ' {
			return Message{}, fmt.Errorf("%w: control character", errMalformed)
		}
	}
	m := Message{ID: id, Data: []byte(data)}
	if _, _, lost := Loss(m.Data); !lost && !json.Valid(m.Data) {
		return Message{}, fmt.Errorf("%w: bad JSON", errMalformed)
	}
	return m, nil
}

// Loss reads a marker, which stands in a queue like a message: those with ids above after, up to
// and including to, were lost by the store although it had acknowledged them. lost is false for a message.
func Loss(data []byte) (after, to int64, lost bool) {
	text, found := bytes.CutPrefix(data, []byte("!"))
	if !found {
		return 0, 0, false
	}
	low, high, found := strings.Cut(string(text), "-")
	after, err1 := strconv.ParseInt(low, 10, 64)
	to, err2 := strconv.ParseInt(high, 10, 64)
	if !found || err1 != nil || err2 != nil || after < 0 || to <= after || to > maxID {
		return 0, 0, false
	}
	return after, to, true
}

// lossMarker is the payload that [Loss] reads.
func lossMarker(after, to int64) []byte { return fmt.Appendf(nil, "!%d-%d", after, to) }

// memberSize is the length of the member that m came from: what the byte limits count.
func memberSize(m Message) int {
	digits := 1
	for id := m.ID; id > 9; id /= 10 {
		digits++
	}
	return digits + 1 + len(m.Data)
}
