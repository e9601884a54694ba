package broker_test

import (
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/internal/await"
	"switchboard/queue"
	"switchboard/registry"
)

// TestSelf: a caller learns what its key may do and which server it has reached.
func TestSelf(t *testing.T) {
	open := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Version = "v9" })
	status, self := open.call(t, "GET", "/v1/self", "")
	want := object{
		"open": true, "tokens": false, "redis": false, "webhooks": false, "version": "v9", "server": open.ID(), "kit": []any{},
		"key": object{"name": "", "scopes": []any{"push", "read", "admin"}},
	}
	for name, value := range want {
		if fmt.Sprint(self[name]) != fmt.Sprint(value) {
			t.Errorf("open broker, %d: %s is %v, want %v", status, name, self[name], value)
		}
	}

	closed := start(t, memoryStore(queue.Options{}), func(o *broker.Options) {
		o.Access.Keys = keys(t, "the-key-of-the-console read console", "the-key-of-a-backend push", "the-key-of-an-operator")
		o.Extensions = []func(*extension.Host) (extension.Extension, error){
			func(*extension.Host) (extension.Extension, error) { return extension.Extension{Name: "rooms"}, nil },
		}
	})
	for key, want := range map[string]string{
		"the-key-of-the-console": "map[name:console scopes:[read]]", "the-key-of-a-backend": "map[name:2 of 3 scopes:[push]]",
		"the-key-of-an-operator": "map[name:3 of 3 scopes:[push read admin]]",
	} {
		_, text := closed.callWithKey(t, key, "GET", "/v1/self", "")
		self := decode(t, []byte(text))
		if fmt.Sprint(self["key"]) != want || self["open"] != false || fmt.Sprint(self["kit"]) != "[rooms]" {
			t.Errorf("%s: %v", key, self)
		}
	}
	if status, answer := closed.callWithKey(t, "another-key-altogether", "GET", "/v1/self", ""); status != http.StatusUnauthorized {
		t.Errorf("an unknown key: %d %v", status, answer)
	}
}

// row returns the numbers of a server in an answer of /v1/stats, or nil.
func row(stats object, server string) object {
	servers, _ := stats["servers"].([]any)
	i := slices.IndexFunc(servers, func(s any) bool { return s.(object)["server"] == server })
	if i < 0 {
		return nil
	}
	return servers[i].(object)
}

// TestNoWebhooks: a broker without webhooks says so.
func TestNoWebhooks(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	for path, method := range map[string]string{"/v1/webhooks": "GET", "/v1/webhooks/dead": "GET", "/v1/webhooks/dead/retry": "POST", "/v1/webhooks/dead/1-2": "DELETE"} {
		status, answer := i.call(t, method, path, "")
		refusal, _ := answer["error"].(object)
		if status != http.StatusNotFound || refusal["message"] != "webhooks are not configured (webhooks.url)" {
			t.Errorf("%s: %d %v", path, status, answer)
		}
	}
}

// numbers returns members of an object as text.
func numbers(o object, names ...string) string {
	var list []string
	for _, name := range names {
		list = append(list, fmt.Sprint(o[name]))
	}
	return strings.Join(list, " ")
}

// TestStats: every server answers the numbers of all.
func TestStats(t *testing.T) {
	t.Parallel()
	s, _ := redisStore(t, shared.Client(t), testBeat)
	brokers := startThree(t, s, nil)
	phone := dialLines(t, net.Dialer{}, brokers[1].TCP)
	phone.connect("phone", "alice")
	phone.subscribe("news")
	phone.subscribe("weather")
	guest := dialLines(t, net.Dialer{}, brokers[1].TCP)
	guest.connect("guest", "")
	guest.close()
	brokers[2].push(t, `{"channel":"news","data":1}`)
	brokers[2].call(t, "POST", "/v1/push", `{"channel":"a b","data":1}`)
	phone.expect(object{"type": "message", "channel": "news"})
	_, stats := brokers[0].call(t, "GET", "/v1/stats", "") // within the time of the quantiles
	pusher := row(stats, brokers[2].ID())
	if appends := pusher["append"].(object); appends["p50"] == nil || appends["p99"] == nil || numbers(pusher, "rss") == "0" ||
		numbers(pusher, "at") < numbers(pusher, "started_at") || row(stats, brokers[0].ID())["append"].(object)["p50"] != nil {
		t.Errorf("after the first push: %v", stats)
	}
	for _, i := range brokers {
		await.True(t, "the numbers are those of all servers", func() bool {
			_, stats := i.call(t, "GET", "/v1/stats", "")
			if stats["partial"] != false || len(stats["servers"].([]any)) != len(brokers) {
				return false
			}
			holder, pusher := row(stats, brokers[1].ID()), row(stats, brokers[2].ID())
			return numbers(holder, "connections", "users", "channels", "subscriptions", "accepted", "closed", "delivered") == "1 1 2 2 2 1 1" &&
				numbers(pusher, "pushes", "push_errors") == "1 1" && numbers(pusher["append"].(object), "count") == "1"
		})
	}
}

// TestStatsWithoutAServer: a server that is listed and does not answer makes the answer partial.
func TestStatsWithoutAServer(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), testBeat)
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	unreachable := registry.Server{ID: "unreachable", Host: "127.0.0.1:1"}
	if err := s.registry.Join(t.Context(), unreachable); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the answer is partial", func() bool {
		if err := s.registry.Join(t.Context(), unreachable); err != nil { // its lease must not end
			t.Fatal(err)
		}
		_, stats := i.call(t, "GET", "/v1/stats", "")
		return stats["partial"] == true && row(stats, i.ID()) != nil && row(stats, "unreachable") == nil
	})
}
