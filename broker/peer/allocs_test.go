package peer

import (
	"testing"

	"switchboard/internal/allocs"
)

func hot() []allocs.Case {
	hints := make([]Hint, 64)
	for i := range hints {
		hints[i] = Hint{Kind: Channel, Name: "news", ID: int64(i + 1), Prev: int64(i), Data: make([]byte, 90)}
	}
	end := ending{goodbye: true}
	batch, _ := appendBatch(nil, 1, hints, end)
	decoded := make([]Hint, 0, len(hints))
	scratch := make([]byte, 0, 2*batchSize)
	out := newOutbox(0)
	out.up = true
	spare := make([]Hint, 0, 64)
	return []allocs.Case{
		allocs.Of("encode 64 hints", 0, func() { scratch, _ = appendBatch(scratch[:0], 1, hints, end) }),
		allocs.Of("decode 64 hints", 128, func() { // a copy of the name and the data of each
			if _, _, _, err := decodeBatch(batch, decoded[:0], supported); err != nil {
				panic(err)
			}
		}),
		allocs.Of("queue and take 64 hints", 0, func() {
			for _, h := range hints {
				out.add(h, false)
			}
			spare, _, _ = out.take(spare[:0])
		}),
	}
}

func TestAllocs(t *testing.T)   { allocs.Test(t, hot()) }
func BenchmarkHot(b *testing.B) { allocs.Bench(b, hot()) }
