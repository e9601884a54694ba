package client_test

import (
	"context"
	"fmt"
	"log"
	"maps"
	"slices"
	"sync"

	"switchboard/client"
	"switchboard/kit/kittest"
)

// others keeps the other clients of a channel. It is a set, because the first event about a client
// may repeat what a page has shown.
type others struct {
	self string

	mu      sync.Mutex // guards the fields below
	members map[string]client.Member
	reading bool
	events  []client.Presence // since the reading of pages began
	changed *sync.Cond
}

func newOthers(self string) *others {
	o := &others{self: self, members: map[string]client.Member{}}
	o.changed = sync.NewCond(&o.mu)
	return o
}

// read reads all pages, and then applies the events that arrived meanwhile. Call it after
// Subscribe, and again after a reconnect.
func (o *others) read(ctx context.Context, c *client.Client, channel string) error {
	o.mu.Lock()
	o.reading, o.events = true, nil
	o.mu.Unlock()
	members := map[string]client.Member{}
	for m, err := range c.Members(ctx, channel) {
		if err != nil {
			return err
		}
		members[m.Client] = m
	}
	delete(members, o.self)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.reading, o.members = false, members
	for _, p := range o.events {
		o.applyLocked(p)
	}
	o.changed.Broadcast()
	return nil
}

// onPresence is the callback of the client.
func (o *others) onPresence(p client.Presence) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.reading {
		o.events = append(o.events, p)
		return
	}
	o.applyLocked(p)
	o.changed.Broadcast()
}

// applyLocked applies Left before Joined: a client that came back as another user is in both.
func (o *others) applyLocked(p client.Presence) {
	if p.All != nil {
		clear(o.members)
	}
	for _, m := range p.Left {
		delete(o.members, m.Client)
	}
	for _, m := range slices.Concat(p.Joined, p.All) {
		if m.Client != o.self {
			o.members[m.Client] = m
		}
	}
}

// await waits until these are the members, and prints them.
func (o *others) await(names ...string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for !slices.Equal(slices.Sorted(maps.Keys(o.members)), names) {
		o.changed.Wait()
	}
	fmt.Println("others:", names)
}

// The members of a channel: a client subscribes, reads the pages, and applies the events.
func ExampleClient_Members() {
	b, stop := kittest.NewMemory().Run(nil)
	defer stop()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	seen := newOthers("alice")
	connect := func(name string, onPresence func(client.Presence)) *client.Client {
		c, err := client.New(client.Options{URLs: []string{b.URL()}, Client: name, OnPresence: onPresence})
		if err != nil {
			log.Fatal(err)
		}
		go func() { _ = c.Run(ctx) }()
		if _, err := c.Subscribe(ctx, "news", client.SubscribeOptions{Presence: onPresence != nil}); err != nil {
			log.Fatal(err)
		}
		return c
	}
	bob := connect("bob", nil)
	alice := connect("alice", seen.onPresence)
	connect("carol", nil)
	if err := seen.read(ctx, alice, "news"); err != nil {
		log.Fatal(err)
	}
	seen.await("bob", "carol")
	if err := bob.Unsubscribe(ctx, "news"); err != nil {
		log.Fatal(err)
	}
	seen.await("carol")
	// Output:
	// others: [bob carol]
	// others: [carol]
}
