//go:build long

package attack

import (
	"strings"
	"testing"
)

// tooManyMessages exceeds the message rate of a connection and ignores the errors.
func tooManyMessages(t *testing.T, s *scenario) {
	for _, e := range endpoints {
		a := s.connectUser(t, e, "mallory")
		sent := make(chan struct{})
		go func() {
			defer close(sent)
			for range 5_000 {
				a.send(`{"type":"ping"}`)
			}
		}()
		codes := map[string]int{}
		for _, code := range strings.Fields(a.outcome()) {
			codes[code]++
		}
		if codes["error:rate_limited"] == 0 || codes["closing:overloaded"] != 1 || len(codes) > 3 || e.frames != (codes["4009"] == 1) {
			t.Errorf("%s: got %v", e.name, codes)
		}
		_ = a.Close()
		<-sent
	}
}
