package hold_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"testing"
	"time"

	"switchboard/broker/namespace"
	"switchboard/client"
	holdclient "switchboard/client/hold"
	"switchboard/internal/wire"
	"switchboard/kit/hold"
)

// answer is the part of answers of calls that the test reads.
type answer struct {
	hold.Hold
	Version   int64           `json:"version"`
	Capacity  int             `json:"capacity"`
	Free      int             `json:"free"`
	Resources []*hold.Status  `json:"resources"`
	Holds     []*hold.Hold    `json:"holds"`
	Error     json.RawMessage `json:"error"`
}

// TestCalls checks the HTTP calls.
func TestCalls(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		t := s.t
		var version int64
		call := func(want int, request, body string, header ...string) answer {
			t.Helper()
			var method, path string
			_, err := fmt.Sscanf(request, "%s %s", &method, &path)
			ok(t, err)
			var a answer
			if status := s.At(len(request)).Call(t, method, "/v1/holds/"+path, body, &a, header...); status != want {
				t.Fatalf("%s %s: %d %+v, want %d", request, body, status, a, want)
			}
			return a
		}
		call(404, "GET play-7", "")
		call(409, "PUT play-7", `{"seats":["A1..A5"]}`, "If-Match", "*")
		version = call(200, "PUT play-7", `{"seats":["A1..A5"]}`, "If-None-Match", "*").Version
		call(409, "PUT play-7", `{"seats":["A1..A6"]}`, "If-None-Match", "*")
		call(200, "PUT play-7", `{"seats":["A1..A6"]}`, "If-Match", fmt.Sprintf("%q", fmt.Sprint(version)))
		call(400, "PUT play-7", `{"seats":["A1..A6"]}`, "If-Match", "x")
		version = call(200, "PUT play-7", `{"seats":["A1..A6"]}`, "If-Match", "*").Version
		call(400, "PUT play-7", `{"chairs":["A1..A6"]}`)
		call(200, "POST play-7/holds", `{"id":"o1","user":"bob","seats":["A1","A2"]}`)
		call(409, "POST play-7/holds", `{"id":"o2","user":"amy","seats":["A2"]}`)
		call(200, "POST play-7/holds", `{"id":"o2","user":"amy","seats":["A3"],"hold_ms":1000}`)
		call(200, "POST play-7/holds/o2/renew", "")
		call(200, "POST play-7/holds/o1/confirm", `{"durable":false}`)
		equal(t, "state", call(200, "GET play-7/holds/o1", "").State, hold.Sold)
		call(200, "POST play-7/sales", `{"id":"s1","seats":["A6"]}`)
		equal(t, "free", call(200, "GET play-7", "").Free, 2)
		query := call(200, "POST query", `{"resources":["play-7","play-8"]}`).Resources
		if len(query) != 2 || query[0].Sold != 3 || query[0].Held != 1 || query[1] != nil {
			t.Fatalf("the answer of the query is %+v", query)
		}
		equal(t, "holds", len(call(200, "GET play-7/users/bob", "").Holds), 1)
		call(200, "POST play-7/holds/o2/release", "")
		call(200, "POST play-7/holds/o2/release", "")
		call(410, "POST play-7/holds/o2/confirm", "")
		call(404, "POST play-7/holds/o3/confirm", "")
		if s.Memory {
			call(400, "POST play-7/holds", `{"user":"eve","seats":["A4"],"durable":true}`)
		} else { // there is no replica; the hold is in the answer
			call(503, "POST play-7/holds", `{"id":"d","user":"eve","seats":["A4"],"durable":true}`)
			call(503, "POST play-7/holds", `{"id":"d","user":"eve","seats":["A4"],"durable":true}`)
			equal(t, "state", call(200, "GET play-7/holds/d", "").State, hold.Held)
		}
		call(409, "DELETE play-7", "", "If-Match", "7")
		call(200, "DELETE play-7", "", "If-Match", fmt.Sprint(version))
		call(404, "GET play-7", "")
	})
}

// TestReadByBackend: with BackendOnly, no client may follow a resource.
func TestReadByBackend(t *testing.T) {
	over(t, hold.Options{Read: new(namespace.BackendOnly)}, func(s *setup) {
		s.put(hold.Resource{Capacity: 1})
		_, err := s.At(0).Connect(s.t, "bob", nil).Subscribe(s.t.Context(), holdclient.Channel(show), client.SubscribeOptions{})
		if !isForbidden(err) {
			s.t.Errorf("the subscription: %v", err)
		}
	})
}

// TestMethods checks what clients may do, and that they follow the seats.
func TestMethods(t *testing.T) {
	over(t, hold.Options{}, func(s *setup) {
		t, ctx := s.t, s.t.Context()
		s.put(hold.Resource{Seats: seats("A1..A5"), HoldMS: 60_000})
		changes := make(chan client.Message, 100)
		bob := s.At(0).Connect(t, "bob", func(o *client.Options) { o.OnMessage = func(m client.Message) { changes <- m } })
		if _, err := bob.Publish(ctx, "hold:"+show, "hello"); !isForbidden(err) {
			t.Fatalf("a client publishes in the channel of a resource: %v", err)
		}
		amy, guest := s.At(1).Connect(t, "amy", nil), s.At(2).Connect(t, "", nil)
		_, err := bob.Subscribe(ctx, holdclient.Channel(show), client.SubscribeOptions{State: true})
		ok(t, err)

		made, err := holdclient.Take(ctx, amy, show, holdclient.Request{ID: "x", Seats: seats("A1", "A2"), For: time.Hour})
		ok(t, err)
		equal(t, "user and time", fmt.Sprint(made.User, made.Until-made.Created), "amy60000")
		take := map[string]any{"resource": show, "id": "x", "seats": seats("A1", "A2")}
		id := map[string]any{"resource": show, "id": "x"}
		wantCode := func(c *client.Client, method string, data any, code wire.ErrorCode) {
			t.Helper()
			err := c.Call(ctx, method, data, nil)
			if e, found := errors.AsType[*client.Error](err); !found || string(e.Code) != string(code) {
				t.Fatalf("%s: %v, want %s", method, err, code)
			}
		}
		for _, method := range seats("hold.get", "hold.renew", "hold.release") {
			wantCode(bob, method, id, wire.NotFound)
		}
		_, err = holdclient.Take(ctx, bob, show, holdclient.Request{Seats: seats("A2", "A3")})
		equal(t, "taken", holdclient.Taken(err), seats("A2"))
		wantCode(guest, "hold.hold", map[string]any{"resource": show, "seats": seats("A3")}, wire.Forbidden)
		wantCode(amy, "hold.confirm", id, wire.NotFound)
		wantCode(amy, "hold.sell", take, wire.NotFound)
		wantCode(amy, "hold.hold", nil, wire.BadRequest)
		wantCode(amy, "hold.hold", map[string]any{"resource": show, "user": "bob", "seats": seats("A4")}, wire.BadRequest)
		_, err = holdclient.Renew(ctx, amy, show, "x")
		ok(t, err)
		got, err := holdclient.Get(ctx, amy, show, "x")
		ok(t, err)
		mine, err := holdclient.Mine(ctx, amy, show)
		ok(t, err)
		equal(t, "my holds", fmt.Sprintf("%+v", *mine[0]), fmt.Sprintf("%+v", *got))
		list, err := holdclient.Resources(ctx, guest, show, "other")
		ok(t, err)
		equal(t, "resources", fmt.Sprint(list[0].Held, list[0].Free, list[1]), "2 3 <nil>")
		for range 2 {
			_, err = holdclient.Release(ctx, amy, show, "x")
			ok(t, err)
		}
		_, err = holdclient.Take(ctx, amy, show, holdclient.Request{ID: "x", Seats: seats("A1", "A2")})
		if h := holdclient.Ended(err); h == nil || h.State != "released" || holdclient.Taken(err) != nil {
			t.Fatalf("the ended hold is %+v, the error %v", h, err)
		}

		seen := waitForDeletion(t, changes)
		for _, name := range seen {
			if name != "seat/A1" && name != "seat/A2" {
				t.Errorf("the client saw the field %s", name)
			}
		}
	})
}

func isForbidden(err error) bool {
	e, found := errors.AsType[*client.Error](err)
	return found && e.Code == client.Forbidden
}

// waitForDeletion returns the names of all fields in the changes up to a deletion.
func waitForDeletion(t *testing.T, changes <-chan client.Message) (names []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), testTimeout)
	defer cancel()
	for {
		select {
		case m := <-changes:
			if m.Changes == nil {
				continue
			}
			for name := range m.Changes.Set {
				names = append(names, name)
			}
			if names = append(names, m.Changes.Deleted...); len(m.Changes.Deleted) > 0 {
				return names
			}
		case <-ctx.Done():
			t.Fatalf("no deletion after the changes of %v", names)
		}
	}
}
