package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"switchboard/client"
)

// TestHistoryNamesClients: a line shows the author, the client of its alias, and the excluded one.
func TestHistoryNamesClients(t *testing.T) {
	page := `{"channel":"room:7","messages":[{"id":735325130218640,"data":"hi","by":"p2","from":"amy/phone","exclude":"bob/tab"}],
		"id":735325130218640,"more":false,"recovered":true}`
	answering(t, page).steps(t, []step{
		{line: "history room:7", want: "\t\"hi\"\tby p2\tfrom amy/phone\tnot to bob/tab\n"},
		{line: "history room:7 --json", want: `"by":"p2","from":"amy/phone","exclude":"bob/tab"`},
	})
}

func TestHistory(t *testing.T) {
	b := startBroker(t, nil)
	for n := range 5 {
		b.ok(t, "push", "news", fmt.Sprint(n))
	}
	if out := b.ok(t, "history", "news"); strings.Count(out, "\n") != 5 || !strings.HasSuffix(out, "\t4\n") {
		t.Errorf("all: %q", out)
	}
	r := b.cli(t, "history", "news", "-n", "2")
	if strings.Count(r.Stdout, "\n") != 2 || !strings.HasSuffix(r.Stdout, "\t4\n") || !strings.Contains(r.Stderr, "the last 2 of 5 messages") {
		t.Errorf("the last two: %+v", r)
	}
	var first tailed
	line, _, _ := strings.Cut(b.ok(t, "history", "news", "--json"), "\n")
	if err := json.Unmarshal([]byte(line), &first); err != nil || first.Type != "message" || first.Channel != "news" || first.Data != 0.0 {
		t.Errorf("%s, %v", line, err)
	}
	if out := b.ok(t, "history", "news", "--after", fmt.Sprint(first.ID)); strings.Count(out, "\n") != 4 || strings.Contains(out, "gap") {
		t.Errorf("after the first one: %q", out)
	}
	if out := b.ok(t, "history", "news", "--after", "5"); !strings.Contains(out, "gap") || strings.Count(out, "\n") != 6 {
		t.Errorf("after an id that the channel never had: %q", out)
	}
	if out := b.ok(t, "history", "news", "--since", "1h"); strings.Count(out, "\n") != 5 {
		t.Errorf("of the last hour: %q", out)
	}
	if out := b.ok(t, "history", "empty"); out != "" {
		t.Errorf("an empty channel: %q", out)
	}
	b.steps(t, []step{
		{line: "history", code: exitUsage, want: "missing: a channel"},
		{line: "history news --last -1", code: exitUsage, want: "must not be below 0"},
	})
}

// TestQueue: queue shows the messages of a device, which receives them all the same.
func TestQueue(t *testing.T) {
	b := startBroker(t, nil)
	b.once(t, "alice", "phone")
	if out := b.ok(t, "queue", "alice/phone"); out != "" {
		t.Errorf("an empty queue: %q", out)
	}
	b.ok(t, "push", "--client", "alice/phone", "1")
	for range 2 {
		if out := b.ok(t, "queue", "alice/phone"); !strings.HasPrefix(out, "alice/phone\t") || !strings.HasSuffix(out, "\t1\n") {
			t.Errorf("%q", out)
		}
	}
	got := make(chan string, 1)
	_, stop := b.run(t, client.Options{User: "alice", Client: "phone", OnMessage: func(m client.Message) { got <- string(m.Data) }})
	defer stop()
	if data := <-got; data != "1" {
		t.Errorf("the device has received %s", data)
	}
	b.steps(t, []step{{line: "queue carol/tab", code: exitNotFound, want: "not_found"}})
}

// TestDisconnect: disconnect closes the connections of users and devices.
func TestDisconnect(t *testing.T) {
	b := startBroker(t, nil)
	ended := make(chan client.State, 3)
	for user, name := range map[string]string{"alice": "phone", "bob": "tab"} {
		b.connect(t, client.Options{User: user, Client: name, OnState: func(s client.State) {
			if s.Phase == client.Closed {
				ended <- s
			}
		}}, "news")
	}
	if out := b.ok(t, "disconnect", "alice", "absent"); out != "alice\t1 connection closed\nabsent\t0 connections closed\n" {
		t.Errorf("%q", out)
	}
	if s := <-ended; !s.Final {
		t.Errorf("%+v", s)
	}
	if d := asJSON[disconnected](t, b, "disconnect", "--client", "bob/tab"); d.Client != "bob/tab" || d.Disconnected != 1 {
		t.Errorf("%+v", d)
	}
	<-ended
	b.steps(t, []step{{line: "disconnect", code: exitUsage, want: "missing: a user or --client"}})
}
