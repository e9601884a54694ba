package client_test

import (
	"testing"

	"switchboard/client"
	"switchboard/kit/kittest"
)

// startAuthor is startDevice for a client that shows authors.
func startAuthor(t *testing.T, url, name string) *device {
	d := &device{t: t, events: make(chan string, 256)}
	d.start(client.Options{URLs: []string{url}, Client: name, OnMessage: func(m client.Message) {
		d.events <- messageText(m) + " by " + m.By
	}})
	return d
}

// TestAuthorsWithABroker checks that a message has its author, live and in the history, and that a
// client does not receive what it publishes without an echo.
func TestAuthorsWithABroker(t *testing.T) {
	url := kittest.NewMemory().Start(t, nil).URL()
	amy, bob := startAuthor(t, url, "amy"), startAuthor(t, url, "bob")
	for _, options := range [][]client.Clause{nil, {client.NoEcho(), client.Key("once")}} {
		if _, err := amy.Publish(t.Context(), "room:1", 1, options...); err != nil {
			t.Fatal(err)
		}
	}
	bob.want("message 1 by amy")
	bob.want("message 1 by amy")
	amy.want("message 1 by amy")
	bob.update(client.Set("x", 1), client.Data(2), client.NoEcho())
	amy.want("message 2 x=1 by bob")
	bob.want("message x=1 by bob")
	page, err := bob.History(t.Context(), "room:1", 0, 10)
	if err != nil {
		t.Fatal(err)
	}
	var authors []string
	for _, m := range page.Messages {
		authors = append(authors, m.By)
	}
	if len(authors) != 3 || authors[0] != "amy" || authors[1] != "amy" || authors[2] != "bob" {
		t.Errorf("the authors in the history are %q", authors)
	}
}
