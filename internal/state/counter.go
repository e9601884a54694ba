package state

import (
	"strconv"
	"strings"
)

// MaxTake is the most numbers that one update takes from a counter.
const MaxTake = 64

// CounterOp returns the operation that takes the numbers of u, which has a Counter. It precedes the
// operations of u.
func (u *Update) CounterOp() Op {
	return Op{Field: u.Counter, Kind: Add, By: int64(min(max(u.Take, 1), MaxTake)), Min: -MaxNumber, Max: MaxNumber}
}

// takeNumbers plans the operation on the counter, and puts the numbers into the other operations.
func (a *update) takeNumbers() error {
	ops := append(append(make([]Op, 0, len(a.Ops)+1), a.CounterOp()), a.Ops...)
	if err := a.plan(&ops[0]); err != nil {
		return err
	}
	numbers := newNumbers(a.plans[0].number, ops[0].By)
	for i := 1; i < len(ops); i++ {
		op := &ops[i]
		op.Field, op.Parent = numbers.Replace(op.Field), numbers.Replace(op.Parent)
		if op.Numbered {
			op.Value = []byte(numbers.Replace(string(op.Value)))
		}
	}
	u := *a.Update
	u.Ops = ops
	a.Update = &u
	return nil
}

// newNumbers returns a replacer of {n}, {n2}, and so on, by take numbers up to last.
func newNumbers(last, take int64) *strings.Replacer {
	pairs := make([]string, 0, 2*take)
	for i := range take {
		mark := "{n}"
		if i > 0 {
			mark = "{n" + strconv.FormatInt(i+1, 10) + "}"
		}
		pairs = append(pairs, mark, strconv.FormatInt(last-take+1+i, 10))
	}
	return strings.NewReplacer(pairs...)
}

// holder returns the holder of the fields that op sets.
func (u *Update) holder(op *Op) string {
	if op.Holder != "" {
		return op.Holder
	}
	return u.Writer
}
