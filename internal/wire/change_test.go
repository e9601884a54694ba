package wire

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// TestChangeErrors checks that the error about a change names the member or the field.
func TestChangeErrors(t *testing.T) {
	var many strings.Builder
	for i := range maxValues + 1 {
		fmt.Fprintf(&many, `,"f%d":1`, i)
	}
	for text, want := range map[string]string{
		`{"set":5}`:                             "bad_request: set: number does not fit, expected an object",
		`{"add":["n"]}`:                         "bad_request: add: array does not fit, expected an object",
		`{"if":"n"}`:                            "bad_request: if: string does not fit, expected an object",
		`{"set":true}`:                          "bad_request: set: bool does not fit, expected an object",
		`{"set":{"n":1,"m":2,"n":3}}`:           "bad_request: field n: it appears twice",
		`{"del":"n"}`:                           "bad_request: del: string does not fit, expected a list, at byte 10",
		`{"del":[1]}`:                           "bad_request: del: number does not fit, expected a string, at byte 9",
		`{"ttl":"1m"}`:                          "bad_request: ttl: string does not fit, expected a number, at byte 11",
		`{"of":{"p/1":2}}`:                      "bad_request: of: number does not fit, expected a string, at byte 14",
		`{"set":{` + many.String()[1:] + `}}`:   "too_large: more than 65536 fields",
		`{"set":null,"del":null,"add":{"n":1}}`: "",
	} {
		for _, into := range []any{new(Change), new(Request)} {
			err := json.Unmarshal([]byte(text), into)
			if err != nil {
				err = JSONError(err)
			}
			if got := fmt.Sprint(err); got != want && (want != "" || err != nil) {
				t.Errorf("%.60s: got %s, want %s", text, got, want)
			}
		}
	}
}
