package wire

import (
	"errors"
	"fmt"
	"testing"
	"time"
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
		if e := Closing(reason, "", 0); e.Message == "" {
			t.Errorf("%s: no message", reason)
		}
		if e := Closing(reason, "details", 0); e.Message != "details" {
			t.Errorf("%s: the message is %q", reason, e.Message)
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

// TestErrorEvent checks that an Error survives the wire, with its advice whether to try again.
func TestErrorEvent(t *testing.T) {
	for _, c := range []struct {
		err       Error
		retryable bool
	}{
		{Error{Code: RateLimited, Message: "slowly", After: 1500 * time.Millisecond}, true},
		{Error{Code: RateLimited, Message: "too many channels", Final: true}, false},
		{Error{Code: Unavailable, Message: "no store"}, true},
		{Error{Code: Timeout, Message: "late"}, true},
		{Error{Code: Forbidden, Message: "no"}, false},
		{Error{Code: TooLarge, Message: "big"}, false},
	} {
		ev := c.err.Event(RefOf(4))
		if got := ErrorOf(ev); *got != c.err || ev.Ref != RefOf(4) || got.Retryable() != c.retryable {
			t.Errorf("%+v: got %+v, retryable %t", c.err, got, got.Retryable())
		}
	}
	if ev := (&Error{Code: RateLimited, After: time.Nanosecond}).Event(Ref{}); ev.AfterMS != 1 {
		t.Errorf("after_ms %d is too early", ev.AfterMS)
	}
	if e := ErrorOf(Event{Code: "rate_limited", AfterMS: 1 << 60}); e.After != 10*time.Minute {
		t.Errorf("a wrong after_ms stops the client for %s", e.After)
	}
}
