package state

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Field is one field of a state, as a store holds it.
type Field struct {
	ID    int64  // id of the change that set the value
	Value []byte // compact JSON; shared, not to be modified
	Lease int64  // end of the lease, 0 for none
	// Away is not 0 if all owners have left: the end of the grace period, or AwayStays.
	Away   int64
	Grace  int64    // grace period of an owned field in milliseconds, or AwayStays
	Holder string   // writer that set the value; "" is not used
	Parent string   // "" for none
	Owners []string // clients, sorted
}

// AwayStays is the Away and the Grace of a field that stays after its owners have left.
const AwayStays = -1

// Until returns when the field ends: the end of its lease or of its grace period, whichever is
// earlier. 0 means that it has no end.
func (f *Field) Until() int64 {
	if f.Away > 0 && (f.Lease == 0 || f.Away <= f.Lease) {
		return f.Away
	}
	return f.Lease
}

// live reports whether the field exists and is not due.
func (f *Field) live(now int64) bool {
	return f != nil && (f.Until() == 0 || f.Until() > now)
}

// size returns the bytes that the field counts for.
func (f *Field) size(name string) int { return len(name) + len(f.Value) }

// clone returns a copy with owners of its own.
func (f *Field) clone() *Field {
	c := *f
	c.Owners = slices.Clone(f.Owners)
	return &c
}

// noParent stands for an empty Parent in a record. It is not the name of a field.
const noParent = "~"

// AppendRecord appends the field as Redis holds it in st_{channel}, without its name:
//
//	<id> <lease> <away> <grace> <holder> <parent, or ~> <owner>…\n<value>
//
// Names of users and clients have neither spaces nor control characters.
func (f *Field) AppendRecord(dst []byte) []byte {
	for _, n := range []int64{f.ID, f.Lease, f.Away, f.Grace} {
		dst = append(strconv.AppendInt(dst, n, 10), ' ')
	}
	dst = append(append(dst, f.Holder...), ' ')
	if f.Parent == "" {
		dst = append(dst, noParent...)
	} else {
		dst = append(dst, f.Parent...)
	}
	for _, owner := range f.Owners {
		dst = append(append(dst, ' '), owner...)
	}
	return append(append(dst, '\n'), f.Value...)
}

var errRecord = errors.New("malformed field")

// ParseRecord parses what AppendRecord has written. The Field shares no memory with record, which
// is larger than the value.
func ParseRecord(record string) (*Field, error) {
	head, value, found := strings.Cut(record, "\n")
	words := strings.Split(strings.Clone(head), " ")
	if !found || len(words) < 6 {
		return nil, errRecord
	}
	var numbers [4]int64
	for i := range numbers {
		n, err := strconv.ParseInt(words[i], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%w: %q", errRecord, words[i])
		}
		numbers[i] = n
	}
	f := &Field{
		ID: numbers[0], Lease: numbers[1], Away: numbers[2], Grace: numbers[3],
		Holder: words[4], Parent: words[5], Owners: words[6:], Value: []byte(value),
	}
	if f.Parent == noParent {
		f.Parent = ""
	}
	if len(f.Owners) == 0 {
		f.Owners = nil
	}
	return f, nil
}
