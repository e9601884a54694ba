package broker_test

import (
	"testing"

	"switchboard/broker"
	"switchboard/broker/namespace"
	"switchboard/queue"
)

// TestAliases checks that a reload which gives a namespace a field with aliases hides the client
// ids at once, that a change of the field is seen, and that another reload shows the ids again.
func TestAliases(t *testing.T) {
	rule := namespace.Rule{Name: "chat:*", Subscribe: namespace.Anyone, Presence: namespace.Anyone, State: namespace.Anyone}
	aliased := rule
	aliased.By = "$$name/{user}"
	i := start(t, memoryStore(queue.Options{}), func(o *broker.Options) { o.Access.Namespaces = rules(t, rule) })
	reload := func(r namespace.Rule) {
		t.Helper()
		if err := i.Reload(broker.AccessOptions{Namespaces: rules(t, r)}); err != nil {
			t.Fatal(err)
		}
	}
	eve, bob := dialers["tcp"](t, i), dialers["tcp"](t, i)
	eve.connect("tab", "eve")
	eve.send(`{"type":"subscribe","channel":"chat:1","presence":true}`)
	eve.expect(object{"type": "subscribed"})
	bob.connect("phone", "bob")
	bob.subscribe("chat:1")
	eve.expect(object{"type": "join", "client": "bob/phone", "user": "bob"})
	i.push(t, `{"channel":"chat:1","set":{"$$name/bob":"Bob B."}}`)

	reload(aliased)
	left := map[any]bool{} // of bob, and of eve, which is not shown
	for range 2 {
		left[eve.expect(object{"type": "leave"})["client"]] = true
	}
	if !left["bob/phone"] || !left["eve/tab"] {
		t.Errorf("the clients that left are %v", left)
	}
	eve.expect(object{"type": "join", "client": "Bob B.", "user": nil})
	eve.send(`{"type":"presence","channel":"chat:1"}`)
	page := eve.expect(object{"type": "presence", "count": 1, "alias": ""})
	if member := page["clients"].([]any)[0].(object); member["client"] != "Bob B." || member["user"] != nil {
		t.Errorf("the page is %v", page)
	}
	i.push(t, `{"channel":"chat:1","set":{"$$name/bob":"Robert"}}`)
	eve.expect(object{"type": "leave", "client": "Bob B.", "user": nil})
	eve.expect(object{"type": "join", "client": "Robert", "user": nil})
	bob.send(`{"type":"here","channel":"chat:1","data":1}`)
	eve.expect(object{"type": "here", "client": "Robert", "user": nil})
	i.push(t, `{"channel":"chat:1","del":["$$name/bob"]}`)
	e := eve.receive()
	if e["type"] == "here" && e["data"] == nil { // the end of the value may come first
		e = eve.receive()
	}
	eve.check(e, object{"type": "leave", "client": "Robert", "user": nil})
	i.push(t, `{"channel":"chat:1","set":{"$$name/bob":5}}`) // not a text
	i.push(t, `{"channel":"chat:1","set":{"$$name/bob":"Bo"}}`)
	eve.expect(object{"type": "join", "client": "Bo", "user": nil})

	reload(rule)
	eve.expect(object{"type": "leave", "client": "Bo"})
	eve.expect(object{"type": "join", "client": "bob/phone", "user": "bob"})
}
