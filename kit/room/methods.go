package room

import (
	"context"

	"switchboard/broker/session"
)

// roomRequest is the data of methods that concern one room.
type roomRequest struct {
	Room string `json:"room" required:"true"`
}

// lockRequest is the body of a lock. Absent means true.
type lockRequest struct {
	Lock *bool `json:"locked,omitempty"`
}

func (q lockRequest) locked() bool { return q.Lock == nil || *q.Lock }

// methods returns the requests of clients.
func (r *Rooms) methods() map[string]session.Method {
	return map[string]session.Method{
		"room.create": method(r.Create),
		"room.join":   method(r.Join),
		"room.patch": method(func(ctx context.Context, a Actor, q struct {
			roomRequest
			PatchRequest
		}) (View, error) {
			q.PatchRequest.Room = q.roomRequest.Room
			return r.Patch(ctx, a, q.PatchRequest)
		}),
		"room.get":   method(func(ctx context.Context, a Actor, q roomRequest) (View, error) { return r.Get(ctx, a, q.Room) }),
		"room.leave": method(func(ctx context.Context, a Actor, q roomRequest) (Left, error) { return r.Leave(ctx, a, q.Room, "") }),
		"room.kick": method(func(ctx context.Context, a Actor, q struct {
			roomRequest
			KickRequest
		}) (Left, error) {
			return r.KickFor(ctx, a, q.Room, q.KickRequest)
		}),
		"room.lock": method(func(ctx context.Context, a Actor, q struct {
			roomRequest
			lockRequest
		}) (View, error) {
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
		quickClient: method(func(ctx context.Context, a Actor, q QuickRequest) (Joined, error) {
			a.free = true
			return r.Quick(ctx, a, q)
		}),
	}
}

// method returns the method that calls an operation with the decoded data.
func method[Q, A any](operation func(context.Context, Actor, Q) (A, error)) session.Method {
	return session.Decoded(func(ctx context.Context, c session.Caller, q Q) (any, error) {
		a, err := actorOf(c)
		if err != nil {
			return nil, err
		}
		return operation(ctx, a, q)
	})
}
