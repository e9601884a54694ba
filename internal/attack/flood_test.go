package attack

import (
	"strings"
	"testing"
)

// tooManyMessages sends more than a connection may, and goes on when it is told so.
func tooManyMessages(t *testing.T, s *siege) {
	for _, e := range entrances {
		a := s.known(t, e, "mallory")
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for range 5_000 {
				a.say(`{"type":"ping"}`)
			}
		}()
		words := map[string]int{}
		for _, word := range strings.Fields(a.verdict()) {
			words[word]++
		}
		if words["error:rate_limited"] == 0 || words["closing:overloaded"] != 1 || len(words) > 3 || e.frames != (words["4009"] == 1) {
			t.Errorf("%s: told %v", e.name, words)
		}
		_ = a.Close()
		<-sent
	}
}
