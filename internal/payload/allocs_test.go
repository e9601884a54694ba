package payload

import (
	"testing"

	"switchboard/internal/allocs"
)

func hot() []allocs.Case {
	data := []byte(`{"type":"chat","from":"alice","text":"a message of an ordinary size, about ninety bytes"}`)
	return []allocs.Case{
		allocs.Of("compact payload", 1, func() { _, _ = Compact(data, 1<<16) }),
	}
}

func TestAllocs(t *testing.T)   { allocs.Test(t, hot()) }
func BenchmarkHot(b *testing.B) { allocs.Bench(b, hot()) }
