package spec_test

import (
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/events"
	"switchboard/events/inspect"
)

// withWebhooks gives a broker the webhooks of a store, which has two dead letters.
func withWebhooks(t *testing.T, store events.Store) func(*broker.Options) {
	t.Helper()
	for shard, user := range []string{"alice", "bob"} {
		store.Schedule(t.Context(), 0, events.Check{Shard: shard, Entry: "u:" + user})
		claims, err := store.Claim(t.Context(), shard, 1, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		online := events.CheckResult{Claim: claims[0], Present: true, Event: []byte(`"type":"user_online","user":"` + user + `"}`)}
		if _, err := store.Settle(t.Context(), shard, online); err != nil {
			t.Fatal(err)
		}
		batch, err := store.Take(t.Context(), shard, 1, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		if err := store.Refused(t.Context(), batch, batch.Events[0].Seq, events.Refused, 0); err != nil {
			t.Fatal(err)
		}
	}
	return func(o *broker.Options) {
		o.Store.Webhooks = inspect.New(store, "https://backend.example.com/switchboard", nil)
	}
}

// operatorSteps are calls of operators: of the console and of the command line.
var operatorSteps = []step{
	{op: "getSelf"},
	{op: "getSelf", key: keyPush},
	{op: "getStats"},
	{op: "listFindings"},
	{op: "push", body: `{"client":"alice/laptop","data":{"badge":1}}`, save: "queued=results.0.id"},
	{op: "getClientQueue", path: "alice/laptop", query: "limit=1&wait=30"},
	{op: "getClientQueue", path: "c-unknown", status: 404, code: "not_found"},
	{op: "getUserClientQueue", path: "alice laptop", query: "after={{queued}}"},
	{op: "getUserClientQueue", path: "alice tablet", status: 404, code: "not_found"},
	{op: "checkRights", body: `{"channel":"news"}`},
	{op: "checkRights", body: `{"user":"bob","channel":"room:7","fields":["seat/A1"]}`},
	{op: "checkRights", body: `{"token":"{{fixed}}","channel":"news"}`},
	{op: "checkRights", body: `{"token":"nonsense","channel":"news"}`},
	{op: "checkRights", body: `{"user":"bob"}`, status: 400, code: "bad_request"},
	{op: "getWebhooks"},
	{op: "listDeadLetters", query: "limit=1", save: "letters=cursor"},
	{op: "listDeadLetters", query: "limit=1", save: "letter=letters.0.id"},
	{op: "retryDeadLetter", path: "{{letter}}"},
	{op: "retryDeadLetter", path: "{{letter}}", status: 404, code: "not_found"},
	{op: "listDeadLetters", query: "limit=1", save: "letter=letters.0.id"},
	{op: "dropDeadLetter", path: "{{letter}}"},
	{op: "dropDeadLetter", path: "{{letter}}", status: 404, code: "not_found"},
	{op: "listDeadLetters", query: "cursor={{letters}}"},
	{op: "listDeadLetters", query: "cursor=x", status: 400, code: "bad_request"},
	{op: "retryDeadLetters"},
	{op: "getChannelHistory", path: "news", query: "after=0&wait=1"},
	{op: "getChannelHistory", path: "news", query: "wait=31", status: 400, code: "bad_request"},
}
