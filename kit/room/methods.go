package room

import (
	"bytes"
	"context"
	"encoding/json"

	"switchboard/broker/session"
	"switchboard/internal/wire"
)

// roomRequest is the data of methods that concern one room.
type roomRequest struct {
	Room string `json:"room"`
	N    int    `json:"n,omitempty"`      // of room.kick
	Lock *bool  `json:"locked,omitempty"` // of room.lock; absent means true
}

func (q roomRequest) locked() bool { return q.Lock == nil || *q.Lock }

// methods returns the requests of clients.
func (r *Rooms) methods() map[string]session.Method {
	return map[string]session.Method{
		"room.create": method(r.Create),
		"room.join":   method(r.Join),
		"room.patch":  method(r.Patch),
		"room.get":    method(func(ctx context.Context, a Actor, q roomRequest) (View, error) { return r.Get(ctx, a, q.Room) }),
		"room.leave":  method(func(ctx context.Context, a Actor, q roomRequest) (Left, error) { return r.Leave(ctx, a, q.Room, "") }),
		"room.kick":   method(func(ctx context.Context, a Actor, q roomRequest) (Left, error) { return r.Kick(ctx, a, q.Room, q.N) }),
		"room.lock": method(func(ctx context.Context, a Actor, q roomRequest) (View, error) {
			return r.Lock(ctx, a, q.Room, q.locked())
		}),
		"room.start":  method(func(ctx context.Context, a Actor, q roomRequest) (View, error) { return r.Start(ctx, a, q.Room) }),
		"room.finish": method(func(ctx context.Context, a Actor, q roomRequest) (View, error) { return r.Finish(ctx, a, q.Room) }),
	}
}

// clientCalls returns the calls that the backend makes in the name of a client.
func (r *Rooms) clientCalls() map[string]session.Method {
	return map[string]session.Method{
		joinClient: method(func(ctx context.Context, a Actor, q JoinRequest) (Joined, error) {
			a.trusted = true
			return r.Join(ctx, a, q)
		}),
		quickClient: method(r.Quick),
	}
}

// method returns the method that calls an operation with the decoded data.
func method[Q, A any](operation func(context.Context, Actor, Q) (A, error)) session.Method {
	return func(ctx context.Context, c session.Caller, data json.RawMessage) (any, error) {
		a, err := actorOf(c)
		if err != nil {
			return nil, err
		}
		var q Q
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err := d.Decode(&q); err != nil {
			return nil, wire.Errorf(wire.BadRequest, "data: %v", err)
		}
		return operation(ctx, a, q)
	}
}
