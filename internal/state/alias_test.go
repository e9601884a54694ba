package state

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestIsAlias checks which texts can be shown.
func TestIsAlias(t *testing.T) {
	for text, want := range map[string]bool{
		"7": true, "Amy Smith": true, "Zoë": true, `a"b`: true, "": false, " version": false, "a\nb": false, "\u0085": false, "\xff": false,
		strings.Repeat("x", MaxAlias): true, strings.Repeat("x", MaxAlias+1): false,
	} {
		if IsAlias(text) != want {
			t.Errorf("IsAlias(%q) is %t", text, !want)
		}
		value, _ := json.Marshal(text)
		if got := aliasOf(value); (got == text) != want && text != "" && text != "\xff" {
			t.Errorf("%s is the alias %q of a field", value, got)
		}
	}
	for _, value := range []string{"7", "null", `{"a":1}`, `["x"]`, `"\n"`, "true"} {
		if got := aliasOf([]byte(value)); got != "" {
			t.Errorf("%s is the alias %q", value, got)
		}
	}
}
