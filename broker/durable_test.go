package broker_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"switchboard/broker"
	"switchboard/internal/await"
	"switchboard/internal/redistest"
)

// results returns the results of a batch as text.
func results(answer object) (lines []string) {
	for _, r := range answer["results"].([]any) {
		lines = append(lines, fmt.Sprint(r))
	}
	return lines
}

// TestDurablePushes: durable pushes to every kind of target. While the replica is paused they are
// still delivered, and the answer says that no replica confirmed them.
func TestDurablePushes(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t)
	replica := redistest.StartReplica(t, server)
	s, _ := redisStore(t, server.Client(t), testBeat)
	i := start(t, s, func(o *broker.Options) { o.Timing.Beat = testBeat })
	i.awaitReady(t, http.StatusOK)
	reader := dialers["tcp"](t, i)
	reader.connect("phone", "alice")
	reader.subscribe("news")
	batch := func(n int) []string {
		t.Helper()
		var messages []string
		for _, target := range []string{`"channel":"news"`, `"user":"alice"`, `"client":"alice/phone"`, `"all":true`} {
			messages = append(messages, fmt.Sprintf(`{%s,"data":%d,"key":"k%d-%d","durable":true}`, target, n, n, len(messages)))
		}
		status, answer := i.call(t, "POST", "/v1/push/batch", `{"messages":[`+strings.Join(messages, ",")+`]}`)
		if status != http.StatusOK {
			t.Fatal(status, answer)
		}
		return results(answer)
	}
	expect := func(n int) {
		t.Helper()
		for range 4 {
			reader.expect(object{"type": "message", "data": n})
		}
	}
	check := func(lines []string, contains string) {
		t.Helper()
		for _, line := range lines {
			if !strings.Contains(line, contains) || strings.Contains(line, "error") != strings.Contains(contains, "replica") {
				t.Errorf("%s, want %q in it", line, contains)
			}
		}
	}
	check(batch(1), "id:")
	expect(1)

	if err := replica.Pause(); err != nil {
		t.Fatal(err)
	}
	check(batch(2), "not confirmed by a replica")
	expect(2)
	check(batch(2), "not confirmed by a replica")
	status, answer := i.call(t, "POST", "/v1/push", `{"channel":"news","data":3,"durable":true}`)
	if status != http.StatusServiceUnavailable || !strings.Contains(fmt.Sprint(answer), "unavailable") {
		t.Errorf("%d %v, want unavailable", status, answer)
	}
	reader.expect(object{"type": "message", "data": 3})
	i.push(t, `{"channel":"news","data":4}`) // pushes that are not durable succeed
	reader.expect(object{"type": "message", "data": 4})

	if err := replica.Resume(); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the replica confirms", func() bool { return !strings.Contains(fmt.Sprint(batch(2)), "error") })
	check(batch(2), "duplicate:true")
	i.push(t, `{"channel":"news","data":5}`)
	reader.expect(object{"type": "message", "data": 5}) // no message was delivered twice
}

// TestDurableBatchWaitsOnce: a batch waits for the replica once for each target. Otherwise, without
// a replica, each push would take a second.
func TestDurableBatchWaitsOnce(t *testing.T) {
	t.Parallel()
	i, server, _ := startWithOwnRedis(t)
	i.awaitReady(t, http.StatusOK)
	var messages []string
	for n := range 50 {
		messages = append(messages, fmt.Sprintf(`{"channel":"news","data":%d,"durable":true}`, n))
	}
	_, answer := i.call(t, "POST", "/v1/push/batch", `{"messages":[`+strings.Join(messages, ",")+`]}`)
	for n, line := range results(answer) {
		if !strings.Contains(line, "not confirmed by a replica") {
			t.Errorf("push %d: %s", n, line)
		}
	}
	stats, err := server.Client(t).InfoMap(t.Context(), "commandstats").Result()
	if err != nil {
		t.Fatal(err)
	}
	// Two calls are possible, since Redis does not know the script at first.
	if got := stats["Commandstats"]["cmdstat_wait"]; !strings.HasPrefix(got, "calls=1,") && !strings.HasPrefix(got, "calls=2,") {
		t.Errorf("WAIT: %s, want one or two", got)
	}
	if _, answer := i.call(t, "GET", "/v1/channels/news", ""); fmt.Sprint(answer["messages"]) != "50" {
		t.Errorf("%v, want 50 messages", answer)
	}
}
