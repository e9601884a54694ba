package broker_test

import (
	"testing"

	"switchboard/broker"
	"switchboard/broker/namespace"
	"switchboard/queue"
)

// TestAuthors checks that the author of a message arrives over all transports, with the right to
// see the presence and not without it, and that the backend sees it in the history.
func TestAuthors(t *testing.T) {
	rules, err := namespace.New([]namespace.Rule{
		{Name: "seen", Subscribe: namespace.Anyone, Publish: namespace.Anyone, History: namespace.Anyone, Presence: namespace.Anyone},
		{Name: "quiet", Subscribe: namespace.Anyone, Publish: namespace.Anyone, History: namespace.Anyone},
		{
			Name: "alias", Subscribe: namespace.Anyone, Publish: namespace.Anyone, History: namespace.Anyone, State: namespace.Anyone,
			By: "$$name/{user}",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Access.Namespaces = rules })
	i.push(t, `{"channel":"alias","set":{"$$name/alice":"A"},"data":0}`)
	for channel, by := range map[string]any{"seen": "alice/phone", "quiet": nil, "alias": "A"} {
		t.Run(channel, func(t *testing.T) {
			events := openStream(t, i, "channel="+channel+"&user=bob&client=stream", "")
			events.expect("connected", object{})
			events.expect("subscribed", object{"channel": channel})
			overAllTransports(t, func(t *testing.T, dial func(instance) *testClient) {
				bob, alice := dial(i), dial(i)
				bob.connect("tab", "bob")
				bob.subscribe(channel)
				alice.connect("phone", "alice")
				alice.send(`{"type":"publish","channel":%q,"data":1,"by":"bob/tab"}`, channel)
				alice.expect(object{"type": "published"})
				bob.expect(object{"type": "message", "data": 1, "by": by})
				events.expect("message", object{"data": 1, "by": by})
				bob.send(`{"type":"history","channel":%q}`, channel)
				page := bob.expect(object{"type": "history"})
				if last := lastOf(page["messages"]); last["by"] != by || last["from"] != nil {
					t.Errorf("a client's history ends with %v, want the author %v", last, by)
				}
			})
			_, page := i.call(t, "GET", "/v1/channels/"+channel+"/history", "")
			want := object{"by": "alice/phone"}
			if channel == "alias" {
				want = object{"by": "A", "from": "alice/phone"}
			}
			if last := lastOf(page["messages"]); last["by"] != want["by"] || last["from"] != want["from"] {
				t.Errorf("the backend's history ends with %v, want %v", last, want)
			}
		})
	}
}

// lastOf returns the last object of a list in an answer.
func lastOf(list any) object {
	items, _ := list.([]any)
	if len(items) == 0 {
		return nil
	}
	last, _ := items[len(items)-1].(object)
	return last
}
