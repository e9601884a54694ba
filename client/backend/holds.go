package backend

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"

	"switchboard/client/hold"
)

// Holds are the holds of a broker, see docs/holds.md. The errors of all calls are an [*Error].
type Holds struct{ *Client }

// ResourceSettings describe a resource: a show with its seats, or a product with its units.
type ResourceSettings struct {
	Capacity  int              `json:"capacity,omitempty"` // Zero means the number of seats
	Seats     []string         `json:"seats,omitempty"`    // names and ranges such as A1..A20; none means units
	HoldMS    int64            `json:"hold_ms,omitempty"`
	MaxLifeMS int64            `json:"max_life_ms,omitempty"`
	PerUser   int              `json:"per_user,omitempty"`
	Ends      int64            `json:"ends,omitempty"` // Unix ms
	Data      json.RawMessage  `json:"data,omitempty"`
	Import    []ImportedPlaces `json:"import,omitempty"` // holds and sales after a loss of the store
	Durable   bool             `json:"durable,omitempty"`
}

// ImportedPlaces are a sale that is written again, or, with Until, a hold.
type ImportedPlaces struct {
	ID    string   `json:"id"`
	User  string   `json:"user,omitempty"`
	Seats []string `json:"seats,omitempty"`
	Count int      `json:"count,omitempty"`
	Until int64    `json:"until,omitempty"` // Unix ms
}

// Places asks for seats, or for a number of units.
type Places struct {
	ID      string   `json:"id,omitempty"`  // of the hold. Zero means that the broker chooses one
	Key     string   `json:"key,omitempty"` // instead of ID: the broker makes the id from it and the user
	User    string   `json:"user,omitempty"`
	Seats   []string `json:"seats,omitempty"`
	Count   int      `json:"count,omitempty"`
	HoldMS  int64    `json:"hold_ms,omitempty"` // not of a sale. Zero means that of the resource
	Durable bool     `json:"durable,omitempty"`
}

// ResourcePage is a page of resources, in the order of their names.
type ResourcePage struct {
	Resources []hold.Resource `json:"resources"`
	Cursor    string          `json:"cursor,omitempty"` // of the next page, "" for the last one
}

func holdPath(resource, rest string) string { return "/v1/holds/" + url.PathEscape(resource) + rest }

// Put creates or changes a resource. A version other than 0 is the one that it must have; see also
// Absent and Exists.
func (h Holds) Put(ctx context.Context, resource string, s ResourceSettings, version int64) (r hold.Resource, err error) {
	err = h.Call(ctx, Request{
		Method: http.MethodPut, Path: holdPath(resource, ""), Body: s, Header: condition(version),
	}, &r)
	return r, err
}

// Resource returns a resource with the number of its free places.
func (h Holds) Resource(ctx context.Context, resource string) (hold.Resource, error) {
	return get[hold.Resource](ctx, h.Client, holdPath(resource, ""), nil)
}

// Resources returns a page of all resources.
func (h Holds) Resources(ctx context.Context, p PageQuery) (ResourcePage, error) {
	return get[ResourcePage](ctx, h.Client, "/v1/holds", p.values())
}

// Query returns up to 100 resources, in the order of the names. One that does not exist is nil.
func (h Holds) Query(ctx context.Context, resources []string) ([]*hold.Resource, error) {
	var answer struct {
		Resources []*hold.Resource `json:"resources"`
	}
	body := map[string][]string{"resources": resources}
	err := h.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/holds/query", Body: body}, &answer)
	return answer.Resources, err
}

// Delete removes a resource with its holds and sales. A version other than 0 is the one that it
// must have.
func (h Holds) Delete(ctx context.Context, resource string, version int64) error {
	return h.Call(ctx, Request{Method: http.MethodDelete, Path: holdPath(resource, ""), Header: condition(version)}, nil)
}

// Take holds all of the places, or none. A call with an ID or a Key can be repeated.
func (h Holds) Take(ctx context.Context, resource string, p Places) (hold.Hold, error) {
	return h.places(ctx, resource, "/holds", p)
}

// Sell sells all of the places, or none, without a hold.
func (h Holds) Sell(ctx context.Context, resource string, p Places) (hold.Hold, error) {
	return h.places(ctx, resource, "/sales", p)
}

func (h Holds) places(ctx context.Context, resource, path string, p Places) (made hold.Hold, err error) {
	err = h.Call(ctx, Request{Method: http.MethodPost, Path: holdPath(resource, path), Body: p}, &made)
	return made, err
}

// Get returns a hold or a sale, also for a day after its end.
func (h Holds) Get(ctx context.Context, resource, id string) (hold.Hold, error) {
	return get[hold.Hold](ctx, h.Client, holdPath(resource, "/holds/"+url.PathEscape(id)), nil)
}

// HoldChange has the options of a change of a hold.
type HoldChange struct {
	Durable bool `json:"durable"` // the answer waits until a replica has the change
}

// Renew makes a hold last for its hold time from now on.
func (h Holds) Renew(ctx context.Context, resource, id string, o ...HoldChange) (hold.Hold, error) {
	return h.change(ctx, resource, id, "renew", o)
}

// Confirm turns a hold into a sale. Confirming it again changes nothing. The code of the error is
// client.Expired if it has ended.
func (h Holds) Confirm(ctx context.Context, resource, id string, o ...HoldChange) (hold.Hold, error) {
	return h.change(ctx, resource, id, "confirm", o)
}

// Release ends a hold or a sale. Releasing it again changes nothing.
func (h Holds) Release(ctx context.Context, resource, id string, o ...HoldChange) (hold.Hold, error) {
	return h.change(ctx, resource, id, "release", o)
}

func (h Holds) change(ctx context.Context, resource, id, action string, o []HoldChange) (changed hold.Hold, err error) {
	r := Request{Method: http.MethodPost, Path: holdPath(resource, "/holds/"+url.PathEscape(id)+"/"+action)}
	if len(o) > 0 {
		r.Body = o[0]
	}
	err = h.Call(ctx, r, &changed)
	return changed, err
}

// Of returns the holds and sales of a user, the newest first, with those that ended lately.
func (h Holds) Of(ctx context.Context, resource, user string) ([]hold.Hold, error) {
	answer, err := get[struct {
		Holds []hold.Hold `json:"holds"`
	}](ctx, h.Client, holdPath(resource, "/users/"+url.PathEscape(user)), nil)
	return answer.Holds, err
}
