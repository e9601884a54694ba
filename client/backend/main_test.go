package backend_test

import (
	"context"
	"testing"

	"switchboard/broker"
	"switchboard/client"
	"switchboard/client/backend"
	"switchboard/internal/await"
	"switchboard/kit/kittest"
)

// start runs a broker in memory until the end of the test, and returns a Client for it, and its
// address.
func start(t *testing.T, options ...func(*broker.Options)) (*backend.Client, string) {
	t.Helper()
	b := kittest.NewMemory().Start(t, func(o *broker.Options) {
		for _, set := range options {
			set(o)
		}
	})
	return newClient(t, "http://"+b.HTTP), b.HTTP
}

func newClient(t *testing.T, urls ...string) *backend.Client {
	t.Helper()
	c, err := backend.New(backend.Options{URLs: urls})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// connect connects a client with a user and subscribes it to a channel.
func connect(t *testing.T, address, user, name, channel string) {
	t.Helper()
	connected := make(chan struct{})
	c, err := client.New(client.Options{
		URLs: []string{"ws://" + address + "/ws"}, User: user, Client: name,
		OnState: func(s client.State) {
			if s.Phase == client.Connected {
				close(connected)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() { defer close(ended); _ = c.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	select {
	case <-connected:
	case <-t.Context().Done():
		t.Fatal("not connected")
	}
	if channel != "" {
		if _, err := c.Subscribe(t.Context(), channel, client.SubscribeOptions{Presence: true}); err != nil {
			t.Fatal(err)
		}
	}
}

// eventually calls read until ok accepts its result.
func eventually[T any](t *testing.T, what string, read func() (T, error), ok func(T) bool) (v T) {
	t.Helper()
	await.True(t, what, func() bool {
		var err error
		if v, err = read(); err != nil {
			t.Fatal(err)
		}
		return ok(v)
	})
	return v
}
