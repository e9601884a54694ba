package webhook

import (
	"fmt"
	"net/http"
	"strconv"
	"time"
)

// maxRetryAfter is the longest that an answer may ask for.
const maxRetryAfter = time.Hour

// Refusal is an answer that is no 2xx.
type Refusal struct {
	Status     int
	RetryAfter time.Duration // not before; 0 when the answer does not say
}

// Error implements error. The body of the answer is not in it: it is the endpoint's, and may hold anything.
func (r *Refusal) Error() string { return fmt.Sprintf("the endpoint answered %d", r.Status) }

// Content says that what was sent will never be taken, while other events may be.
func (r *Refusal) Content() bool {
	return r.Status == http.StatusBadRequest || r.Status == http.StatusRequestEntityTooLarge || r.Status == http.StatusUnprocessableEntity
}

// Gone says that the endpoint wants nothing any more.
func (r *Refusal) Gone() bool { return r.Status == http.StatusGone }

// refusal reads an answer; nil for a 2xx.
func refusal(response *http.Response, now time.Time) error {
	if response.StatusCode/100 == 2 {
		return nil
	}
	return &Refusal{response.StatusCode, retryAfter(response.Header.Get("Retry-After"), now)}
}

// retryAfter reads seconds or a date (RFC 9110 §10.2.3).
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return min(time.Duration(seconds)*time.Second, maxRetryAfter)
	}
	if at, err := http.ParseTime(text); err == nil {
		return min(max(at.Sub(now), 0), maxRetryAfter)
	}
	return 0
}
