package serve

import (
	"slices"
	"strings"
	"testing"
)

func TestConsoleURLs(t *testing.T) {
	for addr, want := range map[string]string{
		"127.0.0.1:8080": "http://127.0.0.1:8080/console/",
		"[::1]:9":        "http://[::1]:9/console/",
	} {
		if got := consoleURLs(addr, false); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %q, want %q", addr, got, want)
		}
	}
	for _, addr := range []string{"0.0.0.0:8080", "[::]:8080"} {
		got := consoleURLs(addr, true)
		if got[0] != "https://127.0.0.1:8080/console/" || strings.Contains(strings.Join(got, " "), "0.0.0.0") {
			t.Errorf("%s: %q", addr, got)
		}
	}
}
