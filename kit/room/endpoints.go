package room

import (
	"cmp"
	"context"

	"switchboard/broker/api"
	"switchboard/broker/session"
	"switchboard/kit"
)

// The requests of calls and of methods, see [kit.Binder]. An operation gets those of both: the
// actor of a call is the backend.
type (
	roomRequest struct {
		Room string `json:"room" required:"true" path:"room"`
	}
	patchRoom struct {
		roomRequest
		IfMatch int64 `json:"-" header:"If-Match"`
		PatchRequest
	}
	kickRequest struct {
		roomRequest
		KickRequest
	}
	lockRequest struct {
		roomRequest
		Lock *bool `json:"locked,omitempty"` // absent means true
	}
)

func (r *Rooms) get(ctx context.Context, a Actor, q roomRequest) (View, error) {
	return r.Get(ctx, a, q.Room)
}

func (r *Rooms) patch(ctx context.Context, a Actor, q patchRoom) (View, error) {
	q.PatchRequest.Room, q.Version = q.roomRequest.Room, cmp.Or(q.IfMatch, q.Version)
	return r.Patch(ctx, a, q.PatchRequest)
}

func (r *Rooms) kick(ctx context.Context, a Actor, q kickRequest) (Left, error) {
	return r.KickFor(ctx, a, q.Room, q.KickRequest)
}

func (r *Rooms) lock(ctx context.Context, a Actor, q lockRequest) (View, error) {
	return r.Lock(ctx, a, q.Room, q.Lock == nil || *q.Lock)
}

func (r *Rooms) start(ctx context.Context, a Actor, q roomRequest) (View, error) {
	return r.Start(ctx, a, q.Room)
}

func (r *Rooms) finish(ctx context.Context, a Actor, q roomRequest) (View, error) {
	return r.Finish(ctx, a, q.Room)
}

// calls returns the HTTP calls of backends.
func (r *Rooms) calls() []api.Call {
	return []api.Call{
		call("POST /v1/rooms", api.ScopePush, r.Create),
		call("GET /v1/rooms/{room}", api.ScopeRead, r.get),
		call("PATCH /v1/rooms/{room}", api.ScopePush, r.patch),
		call("DELETE /v1/rooms/{room}", api.ScopePush, func(ctx context.Context, _ Actor, q struct {
			roomRequest
			Match kit.Match `header:"If-Match"`
		}) (kit.Removed, error) {
			removed, err := q.Match.Removed(r.Delete(ctx, q.Room, q.Match.Version))
			removed.ID = q.Room
			return removed, err
		}),
		call("POST /v1/rooms/{room}/reserve", api.ScopePush, func(ctx context.Context, _ Actor, q struct {
			roomRequest
			ReserveRequest
		}) (Reservation, error) {
			return r.Reserve(ctx, q.Room, q.ReserveRequest)
		}),
		call("POST /v1/rooms/{room}/join", api.ScopePush, func(ctx context.Context, _ Actor, q struct {
			roomRequest
			JoinForRequest
		}) (Joined, error) {
			return r.JoinFor(ctx, q.Room, q.JoinForRequest)
		}),
		call("POST /v1/rooms/{room}/leave", api.ScopePush, func(ctx context.Context, a Actor, q struct {
			roomRequest
			User string `json:"user" required:"true"`
		}) (Left, error) {
			return r.Leave(ctx, a, q.Room, q.User)
		}),
		call("POST /v1/rooms/{room}/kick", api.ScopePush, r.kick),
		call("POST /v1/rooms/{room}/lock", api.ScopePush, r.lock),
		call("POST /v1/rooms/{room}/start", api.ScopePush, r.start),
		call("POST /v1/rooms/{room}/finish", api.ScopePush, r.finish),
		call("GET /v1/rooms", api.ScopeRead, r.List),
		call("GET /v1/room-count", api.ScopeRead, func(ctx context.Context, _ Actor, q struct {
			Mode       string     `query:"mode"`
			Status     Status     `query:"status"`
			Region     string     `query:"region"`
			Visibility Visibility `query:"visibility"`
			Owner      string     `query:"owner"`
		}) (map[string]int, error) {
			n, err := r.Count(ctx, ListRequest{Mode: q.Mode, Status: q.Status, Region: q.Region, Visibility: q.Visibility, Owner: q.Owner})
			return map[string]int{"count": n}, err
		}),
		call("POST /v1/rooms/query", api.ScopeRead, func(ctx context.Context, _ Actor, q struct {
			Rooms []string `json:"rooms" required:"true"`
		}) (map[string][]View, error) {
			rooms, err := r.Query(ctx, q.Rooms)
			return map[string][]View{"rooms": rooms}, err
		}),
		call("POST /v1/rooms/quick", api.ScopePush, func(ctx context.Context, _ Actor, q QuickForRequest) (Joined, error) {
			return r.QuickFor(ctx, q)
		}),
		call("GET /v1/users/{user}/rooms", api.ScopeRead, func(ctx context.Context, a Actor, q struct {
			User string `path:"user"`
			MineRequest
		}) (MinePage, error) {
			return r.Mine(ctx, a, q.User, q.MineRequest)
		}),
	}
}

// call returns the HTTP call that runs an operation of the backend with the bound request.
func call[Q, A any](pattern, scope string, operation func(context.Context, Actor, Q) (A, error)) api.Call {
	return kit.Call(pattern, scope, func(ctx context.Context, q Q) (A, error) { return operation(ctx, Backend, q) })
}

// methods returns the requests of clients.
func (r *Rooms) methods() map[string]session.Method {
	return map[string]session.Method{
		"room.create": method(r.Create),
		"room.join":   method(r.Join),
		"room.patch":  method(r.patch),
		"room.get":    method(r.get),
		"room.leave":  method(func(ctx context.Context, a Actor, q roomRequest) (Left, error) { return r.Leave(ctx, a, q.Room, "") }),
		"room.kick":   method(r.kick),
		"room.lock":   method(r.lock),
		"room.start":  method(r.start),
		"room.finish": method(r.finish),
		"room.list":   method(r.List),
		"room.quick":  method(r.Quick),
		"room.mine":   method(func(ctx context.Context, a Actor, q MineRequest) (MinePage, error) { return r.Mine(ctx, a, "", q) }),
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
