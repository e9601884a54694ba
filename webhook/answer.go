package webhook

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter is the longest delay that an answer can request.
const maxRetryAfter = time.Hour

// A Refusal is an answer with a status other than 2xx.
type Refusal struct {
	Status     int
	RetryAfter time.Duration // least delay before the next attempt; 0 without a Retry-After header
}

// Error implements error. It does not include the body of the answer, because the endpoint may put
// anything there.
func (r *Refusal) Error() string { return fmt.Sprintf("the endpoint answered %d", r.Status) }

// Content reports whether the endpoint refuses the content of this delivery but may accept other
// events.
func (r *Refusal) Content() bool {
	return r.Status == http.StatusBadRequest || r.Status == http.StatusRequestEntityTooLarge || r.Status == http.StatusUnprocessableEntity
}

// Gone reports whether the endpoint no longer accepts any event.
func (r *Refusal) Gone() bool { return r.Status == http.StatusGone }

// refusal returns a *Refusal for an answer, or nil if the status is 2xx.
func refusal(response *http.Response, now time.Time) error {
	if response.StatusCode/100 == 2 {
		return nil
	}
	return &Refusal{response.StatusCode, retryAfter(response.Header.Get("Retry-After"), now)}
}

// retryAfter parses a Retry-After header: seconds or a date (RFC 9110 §10.2.3).
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	return 0
}
