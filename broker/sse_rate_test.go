package broker_test

import (
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"switchboard/broker"
	"switchboard/queue"
)

// TestSSEAckRate: the message rate bounds the acknowledgements of an address, also without a valid
// token, and not those of other addresses.
func TestSSEAckRate(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		o.Limits.MessageRate, o.Limits.Proxies = 1, []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	})
	acknowledge := func(address string) (*http.Response, string) {
		return i.requestSSE(t, "POST", "user=alice&client=phone", "not an id", http.Header{"X-Forwarded-For": {address}})
	}
	if resp, body := acknowledge("192.0.2.1"); resp.StatusCode != http.StatusBadRequest {
		t.Fatal(resp.Status, body)
	}
	for n := 1; ; n++ { // more than one a second
		resp, body := acknowledge("192.0.2.1")
		if resp.StatusCode == http.StatusTooManyRequests {
			after, _ := strconv.Atoi(resp.Header.Get("Retry-After"))
			if n < 4 || after < 1 || !strings.Contains(body, `"rate_limited"`) {
				t.Errorf("after %d calls: Retry-After %d, %s", n, after, body)
			}
			break
		}
		if n == 1000 {
			t.Fatal("1000 acknowledgements at once were not refused")
		}
	}
	if resp, body := acknowledge("192.0.2.2"); resp.StatusCode != http.StatusBadRequest {
		t.Error("another address:", resp.Status, body)
	}
	if _, metrics := i.callWithKey(t, "", "GET", "/metrics", ""); !strings.Contains(metrics, `switchboard_refusals_total{what="ack_rate"}`) {
		t.Error("the refusals are not counted")
	}
}
