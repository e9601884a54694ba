package hold

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// The data of the methods. There is no user: that is the user of the connection.
type (
	resourceRequest struct {
		Resource string `json:"resource" required:"true"`
	}
	saleRequest struct {
		resourceRequest
		ID      string   `json:"id"`
		Key     string   `json:"key"`
		Seats   []string `json:"seats"`
		Count   int      `json:"count"`
		Durable bool     `json:"durable"`
	}
	holdRequest struct {
		saleRequest
		HoldMS int64 `json:"hold_ms"`
	}
	idRequest struct {
		resourceRequest
		ID string `json:"id" required:"true"`
	}
	changeRequest struct {
		idRequest
		Durable bool `json:"durable"`
	}
	resourcesRequest struct {
		Resources []string `json:"resources" required:"true"`
	}
)

// methods returns the methods that clients may call.
func (h *Holds) methods() map[string]session.Method {
	change := func(run func(context.Context, Change) (*Hold, error)) session.Method {
		return method(func(ctx context.Context, user string, q changeRequest) (*Hold, error) {
			return run(ctx, Change{Resource: q.Resource, ID: q.ID, User: &user, Durable: q.Durable})
		})
	}
	methods := map[string]session.Method{
		"hold.hold": method(func(ctx context.Context, user string, q holdRequest) (*Hold, error) {
			take := q.take(user)
			take.HoldMS, take.shorterOnly = q.HoldMS, true
			return h.Hold(ctx, q.Resource, take)
		}),
		"hold.renew": change(h.Renew), "hold.release": change(h.Release), "hold.confirm": change(h.Confirm),
		"hold.sell": method(func(ctx context.Context, user string, q saleRequest) (*Hold, error) {
			return h.Sell(ctx, q.Resource, q.take(user))
		}),
		"hold.get": method(func(ctx context.Context, user string, q idRequest) (*Hold, error) {
			found, err := h.Get(ctx, q.Resource, q.ID)
			if err == nil && found.User != user {
				err = wire.Errorf(wire.NotFound, "resource %s: there is no hold %s", q.Resource, q.ID)
			}
			return found, err
		}),
		"hold.mine": method(func(ctx context.Context, user string, q resourceRequest) (any, error) {
			list, err := h.Of(ctx, q.Resource, user)
			return map[string]any{"holds": list}, err
		}),
		"hold.resources": session.Decoded(func(ctx context.Context, c session.Caller, q resourcesRequest) (any, error) {
			for _, name := range q.Resources {
				if err := c.CheckRead(channelPrefix + name); err != nil {
					return nil, err
				}
			}
			list, err := h.statuses(ctx, q.Resources, maxAnswer)
			return answer(map[string]any{"resources": list}, err)
		}),
	}
	for name := range methods {
		if !slices.Contains(h.opts.Methods, name) {
			delete(methods, name)
		}
	}
	return methods
}

// method returns a method for clients with a user.
func method[Q, A any](run func(ctx context.Context, user string, q Q) (A, error)) session.Method {
	return session.Decoded(func(ctx context.Context, c session.Caller, q Q) (any, error) {
		if c.User == "" {
			return nil, wire.Errorf(wire.Forbidden, "only clients with a user hold")
		}
		return answer(run(ctx, c.User, q))
	})
}

// take returns the places that a client asks for. It may ask for a shorter hold than the resource
// gives, but not for a longer one.
func (q saleRequest) take(user string) TakeRequest {
	return TakeRequest{ID: q.ID, Key: q.Key, User: user, Seats: q.Seats, Count: q.Count, Durable: q.Durable}
}

// answer returns the answer of a method or a call. A hold that no replica has confirmed is in the
// error.
func answer[T any](result T, err error) (any, error) {
	switch {
	case errors.Is(err, queue.ErrNotReplicated):
		return nil, &wire.DetailedError{
			Err:  wire.Errorf(wire.Unavailable, "stored, but not confirmed by a replica in time; repeat the call to wait again"),
			Data: result,
		}
	case errors.Is(err, queue.ErrNoReplicas):
		return nil, wire.Errorf(wire.BadRequest, "durable: this broker keeps its state in memory, where there are no replicas")
	case err != nil:
		return nil, fmt.Errorf("holds: %w", err)
	}
	return result, nil
}
