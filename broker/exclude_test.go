package broker_test

import (
	"fmt"
	"net/http"
	"testing"

	"switchboard/queue"
)

// TestExclude checks that a client that pushes exclude does not receive them: live, when it
// resumes, and after a reconnect at another server. Others and histories have them.
func TestExclude(t *testing.T) {
	s, _ := redisStore(t, shared.Client(t), testBeat)
	brokers := startThree(t, s, nil)
	for name, dial := range dialers {
		t.Run(name, func(t *testing.T) {
			channel := clientName(name)
			alice, bob, position := subscribePair(t, dial, brokers, channel)
			push := func(n int, exclude string) {
				t.Helper()
				brokers[2].push(t, fmt.Sprintf(`{"channel":%q,"data":%d%s}`, channel, n, exclude))
			}
			const excluded = `,"exclude":"alice/phone"`
			push(1, excluded)
			push(2, "")
			push(3, excluded)
			brokers[2].push(t, fmt.Sprintf(`{"channel":%q,"data":4,"set":{"x":1}%s}`, channel, excluded))
			push(5, `,"exclude":"bob/other"`)
			wantData(alice, 2, 5)
			wantData(bob, 1, 2, 3, 4, 5)
			alice.send(`{"type":"history","channel":%q,"ref":9}`, channel)
			if list, _ := alice.expect(object{"type": "history", "ref": 9})["messages"].([]any); len(list) != 5 {
				t.Errorf("the history is %v, want five messages", list)
			}
			alice.close()
			push(6, excluded)
			push(7, "")
			alice = dial(t, brokers[1])
			alice.connect("phone", "alice")
			alice.send(`{"type":"subscribe","channel":%q,"after":%v,"ref":2}`, channel, position)
			alice.expect(object{"type": "subscribed", "recovered": true})
			wantData(alice, 2, 5, 7)
			_, page := brokers[0].call(t, "GET", "/v1/channels/"+channel+"/history", "")
			if list, _ := page["messages"].([]any); len(list) != 7 || list[0].(object)["exclude"] != "alice/phone" {
				t.Errorf("the backend's history is %v", list)
			}
		})
	}
}

// wantData expects messages with these data.
func wantData(p *testClient, data ...int) {
	p.t.Helper()
	for _, n := range data {
		p.expect(object{"type": "message", "data": n})
	}
}

// TestExcludeOnAStream checks that the position of an excluded stream moves on: it resumes after
// the message that it has not received.
func TestExcludeOnAStream(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	const query = "channel=news&user=alice&client=tab"
	s := openStream(t, i, query, "")
	s.expect("connected", object{})
	s.expect("subscribed", object{})
	i.push(t, `{"channel":"news","data":1}`)
	i.push(t, `{"all":true,"data":0,"exclude":"alice/tab"}`)
	excluded := i.push(t, `{"channel":"news","data":2,"exclude":"alice/tab"}`)["id"]
	s.expect("message", object{"data": 1})
	i.push(t, `{"all":true,"data":3}`)
	s.expect("message", object{"channel": "$all", "data": 3})
	// The event of $all may overtake the position of news, which is of another channel.
	for position := any(nil); position != excluded; {
		s.close()
		s = openStream(t, i, query, s.last)
		s.expect("connected", object{})
		position = s.expect("subscribed", object{"recovered": true})["id"]
		i.push(t, `{"all":true,"data":3}`)
		s.expect("message", object{"channel": "$all", "data": 3})
	}
	i.push(t, `{"channel":"news","data":4}`)
	s.expect("message", object{"data": 4})
}

// TestExcludeOfAUser checks that a push to a user skips the excluded client: it is not in its
// queue.
func TestExcludeOfAUser(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	var clients []*testClient
	for _, name := range []string{"phone", "tab"} {
		p := dialers["tcp"](t, i)
		p.connect(name, "alice")
		clients = append(clients, p)
	}
	r := i.push(t, `{"user":"alice","data":1,"exclude":"alice/phone"}`)
	if list := r["clients"].([]any); len(list) != 1 || list[0].(object)["client"] != "alice/tab" {
		t.Errorf("the push is for %v, want alice/tab", list)
	}
	i.push(t, `{"user":"alice","data":2}`)
	clients[0].expect(object{"type": "message", "data": 2})
	clients[1].expect(object{"type": "message", "data": 1})
	clients[1].expect(object{"type": "message", "data": 2})
}

// TestBadExclude checks which pushes refuse exclude, alone and in a batch.
func TestBadExclude(t *testing.T) {
	i := start(t, memoryStore(queue.Options{}), nil)
	for push, want := range map[string]string{
		`{"client":"alice/phone","data":1,"exclude":"alice/tab"}`:    "exclude: a push to clients has none, since it names all its receivers",
		`{"channel":"news","data":1,"exclude":"a b"}`:                `exclude: client: character ' ' at byte 1 of the name is not allowed`,
		`{"channel":"news","data":1,"exclude":["alice/tab"]}`:        "exclude: array does not fit, expected a string, at byte 38",
		`{"channel":"news","exclude":"alice/tab"}`:                   "data: missing, and the push changes no fields (set, del, add, touch)",
		`{"users":["a","b"],"data":1,"exclude":"/"}`:                 "exclude: client: the name is empty",
		`{"channel":"$all","data":1,"exclude":"alice/tab"}`:          "channel $all: it is a system channel",
		`{"channels":["a","$b"],"data":1,"exclude":"alice/tab/x y"}`: `exclude: client: character ' ' at byte 1 of the name is not allowed`,
	} {
		status, answer := i.call(t, http.MethodPost, "/v1/push", push)
		if got := answer["error"].(object)["message"]; status == http.StatusOK || got != want {
			t.Errorf("%s: %d %v, want %s", push, status, got, want)
		}
		_, answer = i.call(t, http.MethodPost, "/v1/push/batch", `{"messages":[{"channel":"ok","data":1},`+push+`]}`)
		if results, _ := answer["results"].([]any); len(results) == 2 && results[1].(object)["error"] == nil {
			if target := results[1].(object)["results"].([]any)[0].(object); target["error"] == nil {
				t.Errorf("%s: accepted in a batch: %v", push, answer)
			}
		}
	}
}
