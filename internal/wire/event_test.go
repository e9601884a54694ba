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

func TestCloseCodes(t *testing.T) {
	reconnect := map[CloseReason]bool{
		CloseDraining: true, CloseSuperseded: false, CloseUnauthorized: false, CloseExpired: true, CloseDisconnected: false,
		CloseBadRequest: false, CloseSlow: true, CloseIdle: true, CloseOverloaded: true,
	}
	seen := map[int]bool{}
	for reason, want := range reconnect {
		status := reason.Status()
		if got, ok := CloseReasonOf(status); !ok || got != reason || status < 4001 || status > 4009 || seen[status] {
			t.Errorf("%s: status %d, which is %s", reason, status, got)
		}
		seen[status] = true
		if reason.Reconnect() != want {
			t.Errorf("%s: reconnect %t", reason, !want)
		}
	}
	if CloseGone.Status() != 1000 || CloseGone.Reconnect() {
		t.Error("a peer that went first is sent nothing")
	}
	for _, status := range []int{0, 1000, 1006, 4000, 4010} {
		if reason, ok := CloseReasonOf(status); ok {
			t.Errorf("status %d is %s", status, reason)
		}
	}
}
