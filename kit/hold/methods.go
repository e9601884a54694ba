package hold

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// A methodRequest is the data of all methods. There is no user: that is the user of the connection.
type methodRequest struct {
	Resource  string   `json:"resource"`
	Resources []string `json:"resources"`
	ID        string   `json:"id"`
	Seats     []string `json:"seats"`
	Count     int      `json:"count"`
	HoldMS    int64    `json:"hold_ms"`
	Durable   bool     `json:"durable"`
}

// methods returns the methods that clients may call.
func (h *Holds) methods() map[string]session.Method {
	type method = func(ctx context.Context, user string, req methodRequest) (any, error)
	change := func(run func(context.Context, Change) (*Hold, error)) method {
		return func(ctx context.Context, user string, req methodRequest) (any, error) {
			return answer(run(ctx, Change{Resource: req.Resource, ID: req.ID, User: &user, Durable: req.Durable}))
		}
	}
	all := map[string]method{
		"hold.hold": func(ctx context.Context, user string, req methodRequest) (any, error) {
			return answer(h.holdFor(ctx, user, req))
		},
		"hold.renew": change(h.Renew), "hold.release": change(h.Release), "hold.confirm": change(h.Confirm),
		"hold.sell": func(ctx context.Context, user string, req methodRequest) (any, error) {
			return answer(h.Sell(ctx, req.Resource, req.take(user)))
		},
		"hold.get": func(ctx context.Context, user string, req methodRequest) (any, error) {
			found, err := h.Get(ctx, req.Resource, req.ID)
			if err == nil && found.User != user {
				err = wire.Errorf(wire.NotFound, "resource %s: there is no hold %s", req.Resource, req.ID)
			}
			return answer(found, err)
		},
		"hold.mine": func(ctx context.Context, user string, req methodRequest) (any, error) {
			list, err := h.Of(ctx, req.Resource, user)
			return map[string]any{"holds": list}, err
		},
		"hold.resources": func(ctx context.Context, _ string, req methodRequest) (any, error) {
			list, err := h.Statuses(ctx, req.Resources)
			return map[string]any{"resources": list}, err
		},
	}
	methods := make(map[string]session.Method)
	for name, run := range all {
		if !slices.Contains(h.opts.Methods, name) {
			continue
		}
		methods[name] = func(ctx context.Context, c session.Caller, data json.RawMessage) (any, error) {
			var req methodRequest
			if err := decode(data, &req); err != nil {
				return nil, err
			}
			if c.User == "" && name != "hold.resources" {
				return nil, wire.Errorf(wire.Forbidden, "%s: only clients with a user hold", name)
			}
			return run(ctx, c.User, req)
		}
	}
	return methods
}

// holdFor holds places for a client. It may ask for a shorter hold than the resource gives, but not
// for a longer one.
func (h *Holds) holdFor(ctx context.Context, user string, req methodRequest) (*Hold, error) {
	take := req.take(user)
	take.shorterOnly = true
	return h.Hold(ctx, req.Resource, take)
}

func (r methodRequest) take(user string) TakeRequest {
	return TakeRequest{ID: r.ID, User: user, Seats: r.Seats, Count: r.Count, HoldMS: r.HoldMS, Durable: r.Durable}
}

// decode decodes the data of a method.
func decode(data json.RawMessage, v any) error {
	if len(data) == 0 {
		return wire.Errorf(wire.BadRequest, "data: it is missing")
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(v); err != nil {
		return wire.Errorf(wire.BadRequest, "data: %v", err)
	}
	return nil
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
