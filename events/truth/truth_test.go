package truth

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"switchboard/events"
	"switchboard/queue"
	"switchboard/registry"
)

var _ events.Truth = Truth{}

func TestOnline(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.join("a", "b", "c")
		w.bind("ann", "phone", "a")
		w.bind("bob", "tab", "b")
		w.bind("bob", "bobs-phone", "a")
		gone := w.bind("cat", "cats", "a")
		ok(w.T, w.ReleaseUser(w.Context(), "cat", "cats", gone))
		w.bind("dan", "dans", "c")
		w.bind("eve", "eves", "nobody")
		online := func(what, want string) {
			w.Helper()
			got, err := New(w, w.queue).Online(w.Context(), []string{"ann", "bob", "cat", "dan", "eve", "unknown"})
			if err != nil || fmt.Sprint(got) != want {
				w.Errorf("%s: %v, %v; want %s", what, got, err, want)
			}
		}
		online("at first", "[true true false true false false]")
		w.loseLease("c")
		online("a server that only misses its lease", "[true true false true false false]")
		buried, err := w.DeclareDead(w.Context(), "c")
		if !buried || err != nil {
			w.Fatal(buried, err)
		}
		online("it was declared dead", "[true true false false false false]")
		ok(w.T, w.Forget(w.Context(), "a"))
		online("another one is gone", "[false true false false false false]")
	})
}

func TestOccupied(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.join("a", "b")
		ctx := w.Context()
		ok(w.T, w.BindChannel(ctx, "a", "news"))
		ok(w.T, w.BindChannel(ctx, "b", "news"))
		ok(w.T, w.BindChannel(ctx, "b", "chat"))
		ok(w.T, w.BindChannel(ctx, "a", "left"))
		ok(w.T, w.UnbindChannel(ctx, "a", "left"))
		occupied := func(what, want string) {
			w.Helper()
			got, err := New(w, w.queue).Occupied(ctx, []string{"news", "chat", "left", "unknown"})
			if err != nil || fmt.Sprint(got) != want {
				w.Errorf("%s: %v, %v; want %s", what, got, err, want)
			}
		}
		occupied("at first", "[true true false false]")
		w.loseLease("b")
		_, err := w.DeclareDead(ctx, "b")
		ok(w.T, err)
		occupied("a server was declared dead", "[true false false false]")
	})
}

func TestAcknowledged(t *testing.T) {
	eachWorld(t, func(w *world) {
		ctx := w.Context()
		var ids []int64
		for range 3 {
			a, err := w.queue.AppendClient(ctx, queue.ClientPush{Client: "phone", Data: []byte("1")})
			ok(w.T, err)
			ids = append(ids, a.ID)
		}
		generation := w.bind("ann", "phone", "a")
		_, err := w.queue.Ack(ctx, "phone", generation, ids[1])
		ok(w.T, err)
		ok(w.T, w.queue.Unbind(ctx, "phone", generation)) // it may have gone since
		for i, want := range []bool{true, true, false} {
			got, err := New(w, w.queue).Acknowledged(ctx, "phone", ids[i])
			if got != want || err != nil {
				w.Errorf("message %d: %v, %v; want %v", i, got, err, want)
			}
		}
		if got, err := New(w, w.queue).Acknowledged(ctx, "unknown", 1); got || err != nil {
			w.Errorf("a client that nobody knows: %v, %v", got, err)
		}
	})
}

// away is a registry of which one call fails.
type away struct {
	Registry
	call string
}

var errAway = errors.New("away")

func (a away) fails(call string) error {
	if a.call == call {
		return errAway
	}
	return nil
}

func (a away) User(ctx context.Context, user string) ([]registry.Binding, error) {
	bindings, err := a.Registry.User(ctx, user)
	return bindings, errors.Join(err, a.fails("User"))
}

func (a away) Lease(ctx context.Context, server string) (registry.Server, bool, error) {
	s, live, err := a.Registry.Lease(ctx, server)
	return s, live, errors.Join(err, a.fails("Lease"))
}

func (a away) Listed(ctx context.Context) ([]string, error) {
	listed, err := a.Registry.Listed(ctx)
	return listed, errors.Join(err, a.fails("Listed"))
}

func (a away) DeclaredDead(ctx context.Context, server string) (bool, error) {
	buried, err := a.Registry.DeclaredDead(ctx, server)
	return buried, errors.Join(err, a.fails("DeclaredDead"))
}

// TestAway: what cannot be found out is an error, and nobody is absent by it.
func TestAway(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.join("a")
		w.bind("ann", "phone", "a")
		w.loseLease("a")
		for _, call := range []string{"User", "Lease", "Listed", "DeclaredDead"} {
			if _, err := New(away{w, call}, w.queue).Online(w.Context(), []string{"ann"}); !errors.Is(err, errAway) {
				w.Errorf("%s fails: %v", call, err)
			}
		}
	})
}

// inbox is an endpoint that takes all.
type inbox struct{ events []string }

func (*inbox) Timeout() time.Duration { return time.Second }

func (b *inbox) Send(_ context.Context, all [][]byte) error {
	for _, event := range all {
		b.events = append(b.events, string(event))
	}
	return nil
}

// TestUndelivered: of two pushes to the devices of a user one is acknowledged, by one of them.
func TestUndelivered(t *testing.T) {
	eachWorld(t, func(w *world) {
		ctx, now, b := w.Context(), time.Now(), &inbox{}
		d, err := events.NewDispatcher(events.Options{
			Store: events.NewMemory(events.StoreOptions{Now: func() time.Time { return now }}), Truth: New(w, w.queue), Sender: b,
		})
		ok(w.T, err)
		w.join("a")
		generation := w.bind("ann", "phone", "a")
		w.bind("ann", "tab", "a")
		push := func(data string) (places []events.Place) {
			for _, client := range []string{"phone", "tab"} {
				a, err := w.queue.AppendClient(ctx, queue.ClientPush{Client: client, User: "ann", Data: []byte(data)})
				ok(w.T, err)
				places = append(places, events.Place{Client: client, ID: a.ID})
			}
			ok(w.T, d.WatchDelivery(ctx, events.Delivery{User: "ann", Clients: places, Data: []byte(data), After: 30 * time.Second}))
			return places
		}
		first := push(`"read"`)
		second := push(`"unread"`)
		_, err = w.queue.Ack(ctx, "phone", generation, first[0].ID)
		ok(w.T, err)
		now = now.Add(30 * time.Second)
		did, err := d.DueRound(ctx)
		if err != nil || did != (events.Report{Checked: 2, Told: 1}) {
			w.Fatalf("did %+v, %v", did, err)
		}
		_, err = d.SendRound(ctx)
		ok(w.T, err)
		want := fmt.Sprintf(`"type":"message_undelivered","user":"ann","clients":[{"client":"phone","id":%d},{"client":"tab","id":%d}],"data":"unread"}`,
			second[0].ID, second[1].ID)
		if len(b.events) != 1 || !strings.HasSuffix(b.events[0], want) {
			w.Errorf("told %s, want %s", b.events, want)
		}
	})
}

// What a device has acknowledged for all of the user's counts as received by those from which it was withdrawn.
func TestWithdrawnIsAcknowledged(t *testing.T) {
	eachWorld(t, func(w *world) {
		w.join("a")
		generation := w.bind("ann", "phone", "a")
		w.bind("ann", "tab", "a")
		ids := map[string]int64{}
		for _, client := range []string{"phone", "tab"} {
			a, err := w.queue.AppendClient(w.Context(), queue.ClientPush{Client: client, User: "ann", Data: []byte("1"), AckGroup: "g"})
			ok(w.T, err)
			ids[client] = a.ID
		}
		for _, acknowledged := range []bool{false, true} {
			for client, id := range ids {
				if got, err := New(w, w.queue).Acknowledged(w.Context(), client, id); got != acknowledged || err != nil {
					w.Errorf("%d of %s is acknowledged: %v, %v, want %v", id, client, got, err, acknowledged)
				}
			}
			_, err := w.queue.Ack(w.Context(), "phone", generation, ids["phone"])
			ok(w.T, err)
		}
	})
}
