package allocs

import "testing"

var sink []byte

func TestCount(t *testing.T) {
	once := func() { sink = make([]byte, 100) }
	if verdict := count(Case{"as the table says", 1, once}); verdict != "" && !raceDetector {
		t.Error(verdict)
	}
	if verdict := count(Case{"more than the table says", 0, once}); verdict == "" {
		t.Error("one allocation more was not found")
	}
}
