package payload

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"switchboard/internal/wire"
)

func TestCompact(t *testing.T) {
	tests := map[string]struct{ data, want string }{
		"compact":     {`{"a":1}`, `{"a":1}`},
		"white space": {" {\n\"a\" :\t[1 ,\r\n2]\n} ", `{"a":[1,2]}`},
		"text stays":  {`{"a": " \n {} \" , "}`, `{"a":" \n {} \" , "}`},
		"a number":    {` 1 `, `1`},
		"null":        {`null`, `null`},
		"markup":      {`"<b>&"`, `"<b>&"`},
		"separators":  {"\"\u2028\u2029\u0085\"", "\"\u2028\u2029\u0085\""},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			raw := []byte(test.data)
			got, err := Compact(raw, len(raw))
			if err != nil {
				t.Fatal(err)
			}
			clear(raw)
			if string(got) != test.want {
				t.Fatalf("got %q, want %q", got, test.want)
			}
			if bytes.ContainsAny(got, "\r\n") {
				t.Fatal("a line break is left: it would end a line of raw TCP")
			}
		})
	}
}

func TestCompactRefuses(t *testing.T) {
	tests := map[string]struct {
		data string
		code wire.ErrorCode
		want string
	}{
		"missing":     {"", wire.BadRequest, "data: missing"},
		"too large":   {`"` + strings.Repeat("x", 99) + `"`, wire.TooLarge, "data: 101 bytes, at most 100 are allowed"},
		"space only":  {"  \n", wire.BadRequest, "not JSON: byte 3"},
		"two values":  {"1 2", wire.BadRequest, "not JSON: byte 3: invalid character '2' after top-level value"},
		"line break":  {"\"a\nb\"", wire.BadRequest, "not JSON: byte 3"},
		"cut off":     {`{"a":`, wire.BadRequest, "not JSON: byte 5"},
		"not UTF-8":   {"\"\xff\"", wire.BadRequest, "UTF-8"},
		"too deep":    {strings.Repeat("[", 65), wire.BadRequest, "byte 64: nested deeper"},
		"wrong close": {`[}`, wire.BadRequest, "not JSON: byte 2"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Compact([]byte(test.data), 100)
			own, ok := errors.AsType[*wire.Error](err)
			if !ok || own.Code != test.code || !strings.Contains(own.Message, test.want) {
				t.Fatalf("got %v, want %s with %q", err, test.code, test.want)
			}
		})
	}
}
