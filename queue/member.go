package queue

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"switchboard/internal/state"
)

// maxID is the largest id: a double represents all integers up to it exactly.
const maxID = 1<<53 - 1

// epochMS is 2020-01-01 UTC, the epoch of ids, in Unix milliseconds. The scripts repeat the number.
const epochMS = 1577836800000

// idsPerMS is the number of ids in a millisecond.
const idsPerMS = 4096

var errMalformed = errors.New("not <id>:<json>")

// IDAt returns the lowest id that a queue assigns at t, unless the queue is ahead of the clock.
func IDAt(t time.Time) int64 { return max(0, (t.UnixMilli()-epochMS)*idsPerMS) }

// TimeOf returns when a queue assigned an id, unless the queue was ahead of the clock.
func TimeOf(id int64) time.Time { return time.UnixMilli(epochMS + id/idsPerMS) }

// nextID returns the id, or generation, that follows last at nowMS, in Unix milliseconds.
func nextID(nowMS, last int64) int64 {
	return max((nowMS-epochMS)*idsPerMS, last+1)
}

// DecodeMember parses a message as Redis holds it, <id>:<json>. The id is part of the member, since
// a ZSET would merge equal payloads. It must be positive, below 2^53 and without leading zeros or
// sign. The rest must be a marker, see [Loss], or one JSON value. The JSON must have no control
// characters, since transports write it into a line unchanged. An entry, which only channels have,
// is an error.
func DecodeMember(member string) (Message, error) {
	m, err := splitMember(member)
	if err != nil {
		return Message{}, err
	}
	if _, _, lost := Loss(m.Data); !lost && !json.Valid(m.Data) {
		return Message{}, fmt.Errorf("%w: bad JSON", errMalformed)
	}
	return m, nil
}

// decodeChannelMember is DecodeMember for a channel, in which the rest may also be the JSON of a
// [state.Entry] after a [state.EntryMark].
func decodeChannelMember(member string) (Message, error) {
	if _, data, _ := strings.Cut(member, ":"); len(data) == 0 || data[0] != state.EntryMark {
		return DecodeMember(member)
	}
	m, err := splitMember(member)
	if err != nil {
		return Message{}, err
	}
	if !json.Valid(m.Data[1:]) {
		return Message{}, fmt.Errorf("%w: bad JSON of an entry", errMalformed)
	}
	return m, nil
}

// splitMember parses the id of a member, and checks the rest for control characters.
func splitMember(member string) (Message, error) {
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
	return Message{ID: id, Data: []byte(data)}, nil
}

// Loss parses the payload of a marker, !<after>-<to>. The store lost messages that it had
// acknowledged: those with after < id <= to. lost is false for the payload of a message.
func Loss(data []byte) (after, to int64, lost bool) {
	text, found := bytes.CutPrefix(data, []byte("!"))
	if !found {
		return 0, 0, false
	}
	low, high, found := strings.Cut(string(text), "-")
	after, afterErr := strconv.ParseInt(low, 10, 64)
	to, toErr := strconv.ParseInt(high, 10, 64)
	if !found || afterErr != nil || toErr != nil || after < 0 || to <= after || to > maxID {
		return 0, 0, false
	}
	return after, to, true
}

// lossMarker returns the payload of a marker, for [Loss].
func lossMarker(after, to int64) []byte { return fmt.Appendf(nil, "!%d-%d", after, to) }

// memberSize returns the length of m as a member in Redis, which the byte limits count.
func memberSize(m Message) int {
	digits := 1
	for id := m.ID; id > 9; id /= 10 {
		digits++
	}
	return digits + 1 + len(m.Data)
}
