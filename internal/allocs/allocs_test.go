package allocs

import "testing"

var sink []byte

func TestCheck(t *testing.T) {
	once := func() { sink = make([]byte, 100) }
	if err := check(Case{"exact", 1, once}); err != nil && !raceDetector {
		t.Error(err)
	}
	if err := check(Case{"one too many", 0, once}); err == nil {
		t.Error("no error for one allocation too many")
	}
}
