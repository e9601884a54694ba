package account

import (
	"fmt"
	"testing"

	"switchboard/kit/kittest"
)

// TestIterationsShowNoNames: after a change of the iterations, neither the former nor the present
// number shows whether a name has an account.
func TestIterationsShowNoNames(t *testing.T) {
	const former = minIteration + 1
	a, _ := start(t, kittest.NewMemory(), func(o *Options) { o.FormerIterations = former })
	seen := map[int]int{}
	for i := range 100 {
		n, err := parseName(fmt.Sprint("unknown-", i))
		if err != nil {
			t.Fatal(err)
		}
		c := a.credentials(&snapshot{}, n)
		seen[c.Iterations]++
		if again := a.credentials(&snapshot{}, n); again.Iterations != c.Iterations || string(again.Salt) != string(c.Salt) {
			t.Errorf("%d: the challenge of an unknown name changes", i)
		}
	}
	if len(seen) != 2 || seen[former] < 20 || seen[minIteration] < 20 {
		t.Errorf("iterations of unknown names: %v", seen)
	}
}
