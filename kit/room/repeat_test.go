package room_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/client"
	clientroom "switchboard/client/room"
	"switchboard/internal/await"
	"switchboard/internal/wire"
	"switchboard/kit/kittest"
	"switchboard/kit/room"
	"switchboard/registry"
)

// failingRegistry is a registry that does not find users while it fails.
type failingRegistry struct {
	broker.Registry
	fail atomic.Bool
}

var errRegistry = errors.New("the registry of the test fails")

func (r *failingRegistry) User(ctx context.Context, user string) ([]registry.Binding, error) {
	if r.fail.Load() {
		return nil, errRegistry
	}
	return r.Registry.User(ctx, user)
}

// TestRepeatedEnd lets the end of a subscription fail after the membership has ended. A repeated
// call ends the subscription, and is then not_found.
func TestRepeatedEnd(t *testing.T) {
	var r *room.Rooms
	reg := &failingRegistry{}
	kittest.Each(t, 1, func(o *broker.Options) {
		reg = &failingRegistry{Registry: o.Store.Registry}
		o.Store.Registry = reg
		o.Extensions = append(o.Extensions, func(h *extension.Host) (_ extension.Extension, err error) {
			if r, err = room.New(h, room.Options{Modes: modes()}); err != nil {
				return extension.Extension{}, err
			}
			return r.Extension(), nil
		})
	}, func(t *testing.T, b *kittest.Brokers) {
		w := &world{T: t, Brokers: b, rooms: []*room.Rooms{r}}
		ctx := t.Context()
		w.make(room.CreateRequest{ID: "a", Mode: "battle"})
		for _, end := range []struct {
			user string
			call func() error
		}{
			{"amy", func() error { _, err := r.Leave(ctx, room.Backend, "a", "amy"); return err }},
			{"bob", func() error { _, err := r.Kick(ctx, room.Backend, "a", 2); return err }},
		} {
			c := b.At(0).Connect(t, end.user, nil)
			if _, err := clientroom.New(c).Join(ctx, "a", clientroom.JoinOptions{}); err != nil {
				t.Fatal(err)
			}
			await.True(t, end.user+" is subscribed", func() bool { return subscribed(c) })
			reg.fail.Store(true)
			if err := end.call(); !errors.Is(err, errRegistry) {
				t.Fatalf("%s: the error is %v", end.user, err)
			}
			if err := end.call(); !errors.Is(err, errRegistry) {
				t.Fatalf("%s, repeated too early: the error is %v", end.user, err)
			}
			reg.fail.Store(false)
			if !subscribed(c) {
				t.Fatalf("%s is not subscribed before the repeated call", end.user)
			}
			w.refused(end.call(), wire.NotFound)
			await.True(t, end.user+" is not subscribed", func() bool { return !subscribed(c) })
		}
		// A user that has joined again is not harmed by a repeated kick.
		c := b.At(0).Connect(t, "cat", nil)
		w.join(clientroom.New(c), "a", 3)
		atOnce := int64(0)
		for range 2 {
			if _, err := r.KickFor(ctx, room.Backend, "a", room.KickRequest{N: 3, TTL: &atOnce}); err != nil {
				w.refused(err, wire.NotFound)
				break
			}
			await.True(t, "cat is not subscribed", func() bool { return !subscribed(c) })
			w.join(clientroom.New(c), "a", 4)
		}
		w.wantMembers("a", "owner 4 4=cat")
	})
}

// subscribed reports whether a client is subscribed to the room a.
func subscribed(c *client.Client) bool {
	_, ok := c.Field("room:a", "$room")
	return ok
}
