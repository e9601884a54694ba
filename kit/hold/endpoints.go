package hold

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/prometheus/client_golang/prometheus"

	"switchboard/broker/api"
	"switchboard/broker/extension"
	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/queue"
)

// Extension returns a function for broker.Options.Extensions.
func Extension(opts Options) func(*extension.Host) (extension.Extension, error) {
	return func(host *extension.Host) (extension.Extension, error) {
		h, err := New(host, opts)
		if err != nil {
			return extension.Extension{}, err
		}
		return h.Extension(), nil
	}
}

// Extension returns the extension of a broker: methods, calls and the channels of resources.
func (h *Holds) Extension() extension.Extension {
	return extension.Extension{
		Name: "holds", Methods: h.methods(), Calls: h.calls(),
		Channels: []extension.ChannelKind{{Rule: namespace.Rule{
			Name: channelPrefix + "*", Subscribe: *h.opts.Read, State: *h.opts.Read,
			// A write from outside must not shorten the life of a resource.
			StateKeep: namespace.KeepForever, FieldsGone: true,
		}}},
		Run:     h.Run,
		Metrics: []prometheus.Collector{h.results, h.newCollector()},
	}
}

// The requests of calls and of methods, see [kit.Binder]. A method has no user: that is the user of
// the connection.
type (
	resourceRequest struct {
		Resource string `json:"resource" required:"true" path:"resource"`
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
	takeRequest struct { // of a backend
		resourceRequest
		TakeRequest
	}
	idRequest struct {
		resourceRequest
		ID string `json:"id" required:"true" path:"id"`
	}
	changeRequest struct {
		idRequest
		Durable bool `json:"durable"`
	}
	resourcesRequest struct {
		Resources []string `json:"resources" required:"true"`
	}
)

// calls returns the HTTP calls.
func (h *Holds) calls() []api.Call {
	change := func(name string, run func(context.Context, Change) (*Hold, error)) api.Call {
		b := kit.NewBinder[changeRequest](decodeOptional)
		return kit.CallWith(b, "POST /v1/holds/{resource}/holds/{id}/"+name, api.ScopePush, func(ctx context.Context, q changeRequest) (any, error) {
			return answer(run(ctx, Change{Resource: q.Resource, ID: q.ID, Durable: q.Durable}))
		})
	}
	return []api.Call{
		call("GET /v1/holds", api.ScopeRead, func(ctx context.Context, q kit.Paged) (*Page, error) {
			return h.List(ctx, q.Cursor, q.Limit)
		}),
		call("PUT /v1/holds/{resource}", api.ScopePush, func(ctx context.Context, q struct {
			Name string `path:"resource"`
			PutRequest
		}) (*Status, error) {
			return h.Put(ctx, q.Name, q.PutRequest)
		}),
		call("GET /v1/holds/{resource}", api.ScopeRead, func(ctx context.Context, q resourceRequest) (*Status, error) {
			return h.Status(ctx, q.Resource)
		}),
		call("DELETE /v1/holds/{resource}", api.ScopePush, func(ctx context.Context, q struct {
			resourceRequest
			Match kit.Match `header:"If-Match"`
		}) (kit.Removed, error) {
			return q.Match.Removed(h.Delete(ctx, q.Resource, q.Match))
		}),
		call("POST /v1/holds/query", api.ScopeRead, func(ctx context.Context, q resourcesRequest) (any, error) {
			list, err := h.Statuses(ctx, q.Resources)
			return map[string]any{"resources": list}, err
		}),
		call("GET /v1/holds/{resource}/holds", api.ScopeRead, func(ctx context.Context, q struct {
			resourceRequest
			HoldQuery
		}) (*HoldPage, error) {
			return h.ListHolds(ctx, q.Resource, q.HoldQuery)
		}),
		call("POST /v1/holds/{resource}/holds", api.ScopePush, func(ctx context.Context, q takeRequest) (*Hold, error) {
			return h.Hold(ctx, q.Resource, q.TakeRequest)
		}),
		call("POST /v1/holds/{resource}/sales", api.ScopePush, func(ctx context.Context, q takeRequest) (*Hold, error) {
			return h.Sell(ctx, q.Resource, q.TakeRequest)
		}),
		call("GET /v1/holds/{resource}/holds/{id}", api.ScopeRead, func(ctx context.Context, q idRequest) (*Hold, error) {
			return h.Get(ctx, q.Resource, q.ID)
		}),
		change("renew", h.Renew), change("confirm", h.Confirm), change("release", h.Release),
		call("GET /v1/holds/{resource}/users/{user}", api.ScopeRead, func(ctx context.Context, q struct {
			resourceRequest
			User string `path:"user"`
		}) (any, error) {
			list, err := h.Of(ctx, q.Resource, q.User)
			return map[string]any{"holds": list}, err
		}),
	}
}

// call returns the HTTP call that runs an operation with the bound request.
func call[Q, A any](pattern, scope string, run func(context.Context, Q) (A, error)) api.Call {
	return kit.Call(pattern, scope, func(ctx context.Context, q Q) (any, error) { return answer(run(ctx, q)) })
}

// decodeOptional decodes a body that may be missing.
func decodeOptional(r *http.Request, into any) error {
	if r.ContentLength == 0 {
		return nil
	}
	return api.DecodeBody(r, into)
}

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
		return nil, wire.Errorf(wire.Unavailable, "stored, but not confirmed by a replica in time; repeat the call to wait again").With(result)
	case errors.Is(err, queue.ErrNoReplicas):
		return nil, wire.Errorf(wire.BadRequest, "durable: this broker keeps its state in memory, where there are no replicas")
	case err != nil:
		return nil, fmt.Errorf("holds: %w", err)
	}
	return result, nil
}
