package loop

import (
	"testing"

	"switchboard/internal/allocs"
)

func allocCases() []allocs.Case {
	l, task := New(0), func() {}
	l.Attach(func(run func()) { run() })
	return []allocs.Case{
		allocs.Of("a task posted and run", 0, func() { l.Post(task) }),
		allocs.Of("a last task posted and run", 0, func() { l.PostLast(taskFunc(task)) }),
	}
}

func TestAllocs(t *testing.T)   { allocs.Test(t, allocCases()) }
func BenchmarkHot(b *testing.B) { allocs.Bench(b, allocCases()) }
