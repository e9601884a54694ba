package wire

import (
	"errors"
	"strings"
	"testing"
)

func TestDecodeEventRefuses(t *testing.T) {
	for raw, want := range map[string]string{
		`{`:                       "not JSON: byte 1",
		`[]`:                      "a JSON object is expected, not array",
		`{}`:                      "type: missing",
		`{"type":"x","id":"7"}`:   "id: string does not fit, expected an integer, at byte 20",
		`{"type":"x","ref":true}`: "ref: true is not an integer",
	} {
		_, err := DecodeEvent([]byte(raw))
		if own, ok := errors.AsType[*Error](err); !ok || !strings.Contains(own.Message, want) {
			t.Errorf("%s: got %v, want %q", raw, err, want)
		}
	}
}
