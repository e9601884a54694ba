package broker_test

import (
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"strings"
	"testing"

	"switchboard/broker"
	"switchboard/queue"
)

// TestPublicReads checks that what calls without an API key read from the store is charged to their
// address, together with what its clients without a user read.
func TestPublicReads(t *testing.T) {
	limits := func(o *broker.Options) {
		withClub(o)
		o.Limits.UserRead, o.Limits.Proxies = 1000, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	}
	redis, _ := redisStore(t, shared.Client(t), testBeat)
	for name, i := range map[string]instance{
		"memory": start(t, memoryStore(queue.Options{}), limits), "Redis": start(t, redis, limits),
	} {
		t.Run(name, func(t *testing.T) {
			fields := make([]string, 20)
			for k := range fields {
				fields[k] = fmt.Sprintf(`"m/u%d":%q`, k, strings.Repeat("x", 1000))
			}
			i.push(t, `{"channel":"club:big","set":{`+strings.Join(fields, ",")+`}}`)
			request := func(method, path, address string) (status int, body string) {
				req, err := http.NewRequestWithContext(t.Context(), method, "http://"+i.HTTP+path, nil)
				if err != nil {
					t.Fatal(err)
				}
				req.Header.Set("X-Forwarded-For", address)
				resp, err := http.DefaultClient.Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer resp.Body.Close()
				text, err := io.ReadAll(resp.Body)
				if err != nil {
					t.Fatal(err)
				}
				body = string(text)
				if status = resp.StatusCode; status == http.StatusTooManyRequests &&
					(resp.Header.Get("Retry-After") == "" || !strings.Contains(body, "limits.user_read")) {
					t.Errorf("%s %s: %v %s", method, path, resp.Header, body)
				}
				return status, body
			}
			const read, ack = "/v1/clubs/big", "/sse?user=alice&client=phone"
			for k, c := range []struct {
				method, path, address string
				want                  int
			}{
				{"GET", read, "192.0.2.1", http.StatusOK},
				{"GET", read, "192.0.2.1", http.StatusTooManyRequests},
				{"POST", ack, "192.0.2.1", http.StatusTooManyRequests},
				{"GET", read, "192.0.2.2", http.StatusOK},
				{"POST", ack, "192.0.2.3", http.StatusBadRequest},
			} {
				if status, body := request(c.method, c.path, c.address); status != c.want {
					t.Errorf("%d: %s %s from %s: %d %s", k, c.method, c.path, c.address, status, body)
				}
			}
			if _, metrics := i.callWithKey(t, "", "GET", "/metrics", ""); !strings.Contains(metrics, `switchboard_refusals_total{what="user_read"} 2`) {
				t.Error("the refusals are not counted")
			}
		})
	}
}
