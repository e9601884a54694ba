package wire

import (
	"errors"
	"fmt"
	"testing"
)

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
		t.Error("CloseGone is sent to no client, so it has no status of its own")
	}
	for _, status := range []int{0, 1000, 1006, 4000, 4010} {
		if reason, ok := CloseReasonOf(status); ok {
			t.Errorf("status %d is %s", status, reason)
		}
	}
}

// TestErrorStatus checks the statuses of the table in docs/protocol.md.
func TestErrorStatus(t *testing.T) {
	for code, want := range map[ErrorCode]int{
		BadRequest: 400, Unauthorized: 401, Forbidden: 403, NotFound: 404, TooLarge: 413, RateLimited: 429,
		Unavailable: 503, Timeout: 504, Conflict: 409, Full: 409, OutOfRange: 409,
		Locked: 423, BadCode: 403, Expired: 410,
	} {
		if got := code.Status(); got != want {
			t.Errorf("%s: status %d, want %d", code, got, want)
		}
	}
}

func TestDetailedError(t *testing.T) {
	err := fmt.Errorf("join: %w", &DetailedError{Errorf(Full, "no seat"), map[string]int{"max": 4}})
	if own, ok := errors.AsType[*Error](err); !ok || own.Code != Full || err.Error() != "join: full: no seat" {
		t.Errorf("got %v, %v", err, own)
	}
}
