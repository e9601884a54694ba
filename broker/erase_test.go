package broker_test

import (
	"fmt"
	"testing"
)

// erase erases a message by the API, and returns the answer.
func (i instance) erase(t *testing.T, channel string, id any) object {
	t.Helper()
	status, answer := i.call(t, "POST", "/v1/erase", fmt.Sprintf(`{"channel":%q,"id":%v}`, channel, id))
	if status != 200 {
		t.Fatalf("erase: %d %v", status, answer)
	}
	return answer
}

// subscribePair subscribes alice on the first broker and bob on the second one to a channel. It
// returns the position of alice, too.
func subscribePair(t *testing.T, dial func(*testing.T, instance) *testClient, brokers []instance, channel string) (alice, bob *testClient, position any) {
	t.Helper()
	alice, bob = dial(t, brokers[0]), dial(t, brokers[1])
	alice.connect("phone", "alice")
	bob.connect("tab", "bob")
	position = alice.subscribe(channel)["id"]
	bob.subscribe(channel)
	return alice, bob, position
}

// TestErase erases a message on three brokers: live clients receive the report, clients that resume
// and histories do not see the message, and a repetition changes nothing.
func TestErase(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), testBeat)
	brokers := startThree(t, s, nil)
	for name, dial := range dialers {
		t.Run(name, func(t *testing.T) {
			channel := clientName(name)
			alice, bob, position := subscribePair(t, dial, brokers, channel)
			id := brokers[1].push(t, fmt.Sprintf(`{"channel":%q,"data":"secret"}`, channel))["id"]
			brokers[2].push(t, fmt.Sprintf(`{"channel":%q,"data":2}`, channel))
			for _, c := range []*testClient{alice, bob} {
				c.expect(object{"type": "message", "data": "secret"})
				c.expect(object{"type": "message", "data": 2})
			}
			answer := brokers[2].erase(t, channel, id)
			for _, c := range []*testClient{alice, bob} {
				c.expect(object{"type": "message", "channel": channel, "erase": id, "id": answer["report"], "data": nil})
			}
			again := brokers[0].erase(t, channel, id)
			if again["duplicate"] != true || again["erased"] != answer["erased"] || again["report"] != answer["report"] {
				t.Errorf("a repetition is %v, want %v", again, answer)
			}
			brokers[2].push(t, fmt.Sprintf(`{"channel":%q,"data":3}`, channel))
			for _, c := range []*testClient{alice, bob} {
				c.expect(object{"type": "message", "data": 3})
			}
			wantErasedHistory(t, alice, channel, id, answer)
			_, page := brokers[1].call(t, "GET", "/v1/channels/"+channel+"/history", "")
			wantErasedPage(t, page, id, answer)
			alice.close()
			for i, b := range brokers {
				alice = dial(t, b)
				alice.connect(fmt.Sprint("phone", i), "alice")
				alice.send(`{"type":"subscribe","channel":%q,"after":%v,"ref":2}`, channel, position)
				alice.expect(object{"type": "subscribed", "recovered": true})
				alice.expect(object{"type": "message", "data": 2})
				alice.expect(object{"type": "message", "erase": id, "id": answer["report"]})
				alice.expect(object{"type": "message", "data": 3})
				alice.close()
			}
		})
	}
}

// wantErasedHistory checks that a client's history shows that the message is erased.
func wantErasedHistory(t *testing.T, c *testClient, channel string, id any, answer object) {
	t.Helper()
	c.send(`{"type":"history","channel":%q,"ref":9}`, channel)
	wantErasedPage(t, c.expect(object{"type": "history", "ref": 9}), id, answer)
}

func wantErasedPage(t *testing.T, page object, id any, answer object) {
	t.Helper()
	list, _ := page["messages"].([]any)
	if len(list) != 4 {
		t.Fatalf("the history is %v", page)
	}
	if got, want := fmt.Sprint(list[0]), fmt.Sprint(object{"id": id, "erased": answer["erased"]}); got != want {
		t.Errorf("the erased message is %s, want %s", got, want)
	}
	if got, want := fmt.Sprint(list[2]), fmt.Sprint(object{"id": answer["report"], "erase": id}); got != want {
		t.Errorf("the report is %s, want %s", got, want)
	}
}

// TestEraseRefused checks what cannot be erased, and a push to all, which can.
func TestEraseRefused(t *testing.T) {
	t.Parallel()
	s, _ := redisStore(t, shared.Client(t), testBeat)
	i := start(t, s, nil)
	id := i.push(t, `{"channel":"news","data":1}`)["id"]
	for _, test := range []struct {
		body   string
		status int
	}{
		{`{"channel":"news"}`, 400}, {`{"id":1}`, 400}, {`{"channel":"news","id":0}`, 400}, {`{"channel":"news","id":"1"}`, 400},
		{`{"channel":"n ws","id":1}`, 400}, {`{"channel":"$user/amy","id":1}`, 403}, {`{"channel":"other","id":1}`, 404},
		{fmt.Sprintf(`{"channel":"news","id":%v0}`, id), 404}, {fmt.Sprintf(`{"channel":"news","id":%v,"durable":true}`, id), 503},
	} {
		if status, answer := i.call(t, "POST", "/v1/erase", test.body); status != test.status {
			t.Errorf("%s: %d %v, want %d", test.body, status, answer, test.status)
		}
	}
	all := i.push(t, `{"all":true,"data":1}`)["id"]
	if answer := i.erase(t, "$all", all); answer["duplicate"] != nil {
		t.Errorf("a push to all: %v", answer)
	}
}
