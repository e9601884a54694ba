package api

import (
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/internal/wire"
)

// TestPushRate exhausts the push rate of an API key, over net/http and through Push.
func TestPushRate(t *testing.T) {
	one := `{"channel":"news","data":1}`
	batch := func(n int) string { return `{"messages":[` + strings.Repeat(one+",", n-1) + one + `]}` }
	type call struct {
		after      time.Duration
		key        string
		path, body string
		status     int
		retry      string
	}
	const ms = time.Millisecond
	for name, calls := range map[string][]call{
		"pushes": {
			{0, "a", PathPush, one, 200, ""}, {0, "a", PathPush, one, 200, ""}, {0, "a", PathPush, one, 200, ""}, {0, "a", PathPush, one, 200, ""},
			{0, "a", PathPush, one, 429, "1"}, {0, "b", PathPush, one, 200, ""},
			{999 * ms, "a", PathPush, one, 429, "1"}, {1 * ms, "a", PathPush, one, 200, ""}, {0, "a", PathPush, one, 429, "1"},
		},
		"each push of a batch counts": {{0, "a", PathBatch, batch(4), 200, ""}, {0, "a", PathPush, one, 429, "1"}, {0, "a", PathBatch, batch(2), 429, "1"}},
		"a large batch": {
			{0, "a", PathBatch, batch(10), 200, ""}, {0, "a", PathPush, one, 429, "7"},
			{6999 * ms, "a", PathPush, one, 429, "1"}, {1 * ms, "a", PathPush, one, 200, ""},
		},
		"each target counts": {
			{0, "a", PathPush, `{"clients":["1","2","3","4"],"data":1}`, 200, ""}, {0, "a", PathPush, `{"client":"1","data":1}`, 429, "1"},
			{0, "a", PathPush, `{"all":true,"data":1}`, 429, "1"}, {0, "a", PathPush, `{"user":"x","data":1}`, 429, "1"},
		},
		"refused targets cost nothing": {
			{0, "a", PathPush, `{"channel":"$all","data":1}`, 403, ""}, {0, "a", PathPush, `{"channel":"news"}`, 400, ""},
			{0, "a", PathBatch, batch(4), 200, ""}, {0, "a", PathPush, `{"channel":"$all","data":1}`, 403, ""},
		},
		"without a limit": {{0, "none", PathBatch, batch(1000), 200, ""}, {0, "none", PathBatch, batch(1000), 200, ""}},
	} {
		for _, direct := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, without net/http %v", name, direct), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					buckets := map[string]*limit.SharedBucket{"a": limit.NewSharedBucket(limit.PerSecond(1)), "b": limit.NewSharedBucket(limit.PerSecond(1))}
					refused, open := 0, namespace.Open()
					h := New(Options{
						Pusher: acceptAll{}, MaxMessage: 100, CallLimits: CallLimits{Batch: 1000, Targets: 10_000}, Namespaces: func() *namespace.Set { return open },
						Authorize: func(key, _ string) (*limit.SharedBucket, error) { return buckets[key], nil },
						CountPush: func(_, code string) {
							if code == string(wire.RateLimited) {
								refused++
							}
						},
					})
					for i, c := range calls {
						<-time.After(c.after)
						before, retry, text, status := refused, "", "", 0
						if direct {
							a := h.Push(c.path, c.key, []byte(c.body), nil)
							if status, text = a.Status, string(a.Body); a.RetryAfter > 0 {
								retry = fmt.Sprint(a.RetryAfter)
							}
						} else {
							w, r := httptest.NewRecorder(), httptest.NewRequest("POST", c.path, strings.NewReader(c.body))
							r.Header.Set("Authorization", c.key)
							h.ServeHTTP(w, r)
							status, text, retry = w.Code, w.Body.String(), w.Header().Get("Retry-After")
						}
						if status != c.status || retry != c.retry || (status == 429) != (strings.Contains(text, "rate_limited") && refused > before) {
							t.Errorf("call %d: %d %q %s, counted %d; want %d %q", i, status, retry, text, refused-before, c.status, c.retry)
						}
					}
				})
			})
		}
	}
}
