// Package hold holds seats for the user of a client. It calls the methods hold.… of a broker with
// holds. A backend confirms the holds over HTTP.
//
//	made, err := hold.Take(ctx, c, "play-7", hold.Request{Seats: []string{"A1", "A2"}})
//	if taken := hold.Taken(err); taken != nil {
//		… // choose other seats
//	}
//
// To follow the seats, subscribe to [Channel] with the state. The field seat/A1 exists while the
// seat is held or sold, and its Until is the end of the hold.
package hold

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"switchboard/client"
)

// Channel returns the channel of a resource.
func Channel(resource string) string { return "hold:" + resource }

// Request asks for places.
type Request struct {
	// ID identifies the hold. Repeat a call with the same ID if its outcome is unknown. "" means that
	// the broker chooses one.
	ID string
	// Key identifies the call instead of ID: the broker makes the id from it and the user.
	Key string
	// Seats are named seats. Count is a number of units, if the resource has no named seats.
	Seats []string
	Count int
	// For is how long the hold lasts, in milliseconds precision. Zero, or more than the resource
	// allows, means the time of the resource.
	For time.Duration
	// Durable waits until a replica of the store has the hold.
	Durable bool
}

// request is the data of the methods.
type request struct {
	Resource  string   `json:"resource,omitempty"`
	Resources []string `json:"resources,omitempty"`
	ID        string   `json:"id,omitempty"`
	Key       string   `json:"key,omitempty"`
	Seats     []string `json:"seats,omitempty"`
	Count     int      `json:"count,omitempty"`
	HoldMS    int64    `json:"hold_ms,omitempty"`
	Durable   bool     `json:"durable,omitempty"`
}

// Take holds all of the places, or none. The codes of the error are
//
//   - Conflict: the seats are not free, see [Taken], or the user has a hold
//   - Full: fewer units are free
//   - Expired: the ID is that of a hold that has ended, see [Ended]
//   - NotFound: there is no such resource or seat
func Take(ctx context.Context, c *client.Client, resource string, r Request) (*Hold, error) {
	return call(ctx, c, "hold.hold", request{
		Resource: resource, ID: r.ID, Key: r.Key, Seats: r.Seats, Count: r.Count, HoldMS: r.For.Milliseconds(), Durable: r.Durable,
	})
}

// Renew makes a hold last for its hold time from now on. The code of the error is Expired if it has
// ended, and OutOfRange if it has reached its longest life.
func Renew(ctx context.Context, c *client.Client, resource, id string) (*Hold, error) {
	return call(ctx, c, "hold.renew", request{Resource: resource, ID: id})
}

// Release ends a hold or a sale of the user. Nothing happens if it has ended already.
func Release(ctx context.Context, c *client.Client, resource, id string) (*Hold, error) {
	return call(ctx, c, "hold.release", request{Resource: resource, ID: id})
}

// Get returns a hold of the user.
func Get(ctx context.Context, c *client.Client, resource, id string) (*Hold, error) {
	return call(ctx, c, "hold.get", request{Resource: resource, ID: id})
}

// Mine returns the holds and sales of the user, the newest first, with those that ended lately.
func Mine(ctx context.Context, c *client.Client, resource string) ([]*Hold, error) {
	var answer struct {
		Holds []*Hold `json:"holds"`
	}
	err := c.Call(ctx, "hold.mine", request{Resource: resource}, &answer)
	return answer.Holds, err
}

// Resources returns resources in the order of the names, nil for one that does not exist.
func Resources(ctx context.Context, c *client.Client, names ...string) ([]*Resource, error) {
	var answer struct {
		Resources []*Resource `json:"resources"`
	}
	err := c.Call(ctx, "hold.resources", request{Resources: names}, &answer)
	return answer.Resources, err
}

// Taken returns the seats that are not free, if they are why Take has failed.
func Taken(err error) []string {
	var facts struct {
		Taken []string `json:"taken"`
	}
	decodeFacts(err, &facts)
	return facts.Taken
}

// Ended returns the hold that has ended, if it is why a call has failed with Expired, or nil.
func Ended(err error) *Hold {
	var h Hold
	if decodeFacts(err, &h); h.Ended == 0 {
		return nil
	}
	return &h
}

func call(ctx context.Context, c *client.Client, method string, r request) (*Hold, error) {
	var h Hold
	if err := c.Call(ctx, method, r, &h); err != nil {
		return nil, err
	}
	return &h, nil
}

// decodeFacts decodes the facts of an error. It leaves v as it is if there are none.
func decodeFacts(err error, v any) {
	if d, found := errors.AsType[*client.DetailedError](err); found {
		_ = json.Unmarshal(d.Data, v) // a refusal without these facts
	}
}
