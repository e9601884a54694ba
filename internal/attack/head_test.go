//go:build long

package attack

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// hugeHeads sends requests with far too large headers.
func hugeHeads(t *testing.T, s *scenario) {
	many := func(n int) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "X-%d: %s\r\n", i, strings.Repeat("v", 20))
		}
		return b.String()
	}
	const first = "GET /ws HTTP/1.1\r\nHost: broker\r\n"
	var all sync.WaitGroup
	defer all.Wait()
	for name, head := range map[string]string{
		"a header":                first + "X-Long: " + strings.Repeat("x", 1<<20) + "\r\n\r\n",
		"many headers":            first + many(50_000) + "\r\n",
		"a header without an end": first + "X-Long: " + strings.Repeat("x", 1<<20),
		"a URL":                   "GET /ws?token=" + strings.Repeat("x", 1<<20) + " HTTP/1.1\r\nHost: broker\r\n\r\n",
		"a method":                "G" + strings.Repeat("E", 1<<20) + "T /ws HTTP/1.1\r\nHost: broker\r\n\r\n",
		"a cookie":                first + "Cookie: " + strings.Repeat("a=b; ", 200_000) + "\r\n\r\n",
		"an origin":               first + "Origin: http://" + strings.Repeat("a.", 500_000) + "com\r\n\r\n",
		"a list of extensions":    first + "Sec-WebSocket-Extensions: " + strings.Repeat(deflateOffer+", ", 10_000) + "x\r\n\r\n",
	} {
		for _, http := range []bool{false, true} {
			a, err := s.dial(http, nil)
			if err != nil {
				t.Fatal(err)
			}
			// Reading in parallel to writing gets the response before the broker resets the connection.
			all.Go(func() { a.sendRaw(head) })
			all.Go(func() {
				defer a.Close()
				if got := a.outcome(); got != "HTTP 431" {
					t.Errorf("%s, HTTP port %v: got %q, want HTTP 431", name, http, got)
				}
			})
		}
	}
}
