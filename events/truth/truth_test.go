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
	eachStore(t, func(s *stores) {
		s.join("a", "b", "c")
		s.bind("ann", "phone", "a")
		s.bind("bob", "tab", "b")
		s.bind("bob", "bobs-phone", "a")
		offline := s.bind("cat", "cats", "a")
		_, err := s.ReleaseUser(s.Context(), "cat", "cats", offline)
		ok(s.T, err)
		s.bind("dan", "dans", "c")
		s.bind("eve", "eves", "unlisted")
		online := func(what, want string) {
			s.Helper()
			got, err := New(s, s.queue).Online(s.Context(), []string{"ann", "bob", "cat", "dan", "eve", "unknown"})
			if err != nil || fmt.Sprint(got) != want {
				s.Errorf("%s: %v, %v; want %s", what, got, err, want)
			}
		}
		online("at first", "[true true false true false false]")
		s.expireLease("c")
		online("after the lease of a server expired", "[true true false true false false]")
		dead, err := s.DeclareDead(s.Context(), "c")
		if !dead || err != nil {
			s.Fatal(dead, err)
		}
		online("after the server was declared dead", "[true true false false false false]")
		ok(s.T, s.Forget(s.Context(), "a"))
		online("after another server was removed", "[false true false false false false]")
	})
}

func TestOccupied(t *testing.T) {
	eachStore(t, func(s *stores) {
		s.join("a", "b")
		ctx := s.Context()
		ok(s.T, s.BindChannel(ctx, "a", "news"))
		ok(s.T, s.BindChannel(ctx, "b", "news"))
		ok(s.T, s.BindChannel(ctx, "b", "chat"))
		ok(s.T, s.BindChannel(ctx, "a", "left"))
		ok(s.T, s.UnbindChannel(ctx, "a", "left"))
		occupied := func(what, want string) {
			s.Helper()
			got, err := New(s, s.queue).Occupied(ctx, []string{"news", "chat", "left", "unknown"})
			if err != nil || fmt.Sprint(got) != want {
				s.Errorf("%s: %v, %v; want %s", what, got, err, want)
			}
		}
		occupied("at first", "[true true false false]")
		s.expireLease("b")
		_, err := s.DeclareDead(ctx, "b")
		ok(s.T, err)
		occupied("after a server was declared dead", "[true false false false]")
	})
}

func TestAcknowledged(t *testing.T) {
	eachStore(t, func(s *stores) {
		ctx := s.Context()
		var ids []int64
		for range 3 {
			a, err := s.queue.AppendClient(ctx, queue.ClientPush{Client: "phone", Data: []byte("1")})
			ok(s.T, err)
			ids = append(ids, a.ID)
		}
		generation := s.bind("ann", "phone", "a")
		_, err := s.queue.Ack(ctx, "phone", generation, ids[1])
		ok(s.T, err)
		ok(s.T, s.queue.Unbind(ctx, "phone", generation)) // the client may be offline
		for i, want := range []bool{true, true, false} {
			got, err := New(s, s.queue).Acknowledged(ctx, "phone", ids[i])
			if got != want || err != nil {
				s.Errorf("message %d: %v, %v; want %v", i, got, err, want)
			}
		}
		if got, err := New(s, s.queue).Acknowledged(ctx, "unknown", 1); got || err != nil {
			s.Errorf("an unknown client: %v, %v", got, err)
		}
	})
}

// failing is a registry in which one method fails.
type failing struct {
	Registry
	method string // name of the method that fails
}

var errFailing = errors.New("the call fails")

func (f failing) errorOf(method string) error {
	if f.method == method {
		return errFailing
	}
	return nil
}

func (f failing) User(ctx context.Context, user string) ([]registry.Binding, error) {
	bindings, err := f.Registry.User(ctx, user)
	return bindings, errors.Join(err, f.errorOf("User"))
}

func (f failing) Lease(ctx context.Context, server string) (registry.Server, bool, error) {
	s, live, err := f.Registry.Lease(ctx, server)
	return s, live, errors.Join(err, f.errorOf("Lease"))
}

func (f failing) Listed(ctx context.Context) ([]string, error) {
	listed, err := f.Registry.Listed(ctx)
	return listed, errors.Join(err, f.errorOf("Listed"))
}

func (f failing) DeclaredDead(ctx context.Context, server string) (bool, error) {
	dead, err := f.Registry.DeclaredDead(ctx, server)
	return dead, errors.Join(err, f.errorOf("DeclaredDead"))
}

// TestRegistryFails checks that Online returns an error if any of its calls to the registry fails.
func TestRegistryFails(t *testing.T) {
	eachStore(t, func(s *stores) {
		s.join("a")
		s.bind("ann", "phone", "a")
		s.expireLease("a")
		for _, method := range []string{"User", "Lease", "Listed", "DeclaredDead"} {
			if _, err := New(failing{s, method}, s.queue).Online(s.Context(), []string{"ann"}); !errors.Is(err, errFailing) {
				s.Errorf("%s fails: %v", method, err)
			}
		}
	})
}

// fakeSender is a Sender that stores all events.
type fakeSender struct{ events []string }

func (*fakeSender) Timeout() time.Duration { return time.Second }

func (f *fakeSender) Send(_ context.Context, all [][]byte) error {
	for _, event := range all {
		f.events = append(f.events, string(event))
	}
	return nil
}

// TestUndelivered pushes two messages to two clients of a user. One client acknowledges one
// message.
func TestUndelivered(t *testing.T) {
	eachStore(t, func(s *stores) {
		ctx, now, sender := s.Context(), time.Now(), &fakeSender{}
		d, err := events.NewDispatcher(events.Options{
			Store: events.NewMemory(events.StoreOptions{Now: func() time.Time { return now }}), Truth: New(s, s.queue), Sender: sender,
		})
		ok(s.T, err)
		s.join("a")
		generation := s.bind("ann", "phone", "a")
		s.bind("ann", "tab", "a")
		push := func(data string) (copies []events.ClientMessage) {
			for _, client := range []string{"phone", "tab"} {
				a, err := s.queue.AppendClient(ctx, queue.ClientPush{Client: client, User: "ann", Data: []byte(data)})
				ok(s.T, err)
				copies = append(copies, events.ClientMessage{Client: client, ID: a.ID})
			}
			ok(s.T, d.SetAckDeadline(ctx, events.AckDeadline{User: "ann", Clients: copies, Data: []byte(data), After: 30 * time.Second}))
			return copies
		}
		first := push(`"read"`)
		second := push(`"unread"`)
		_, err = s.queue.Ack(ctx, "phone", generation, first[0].ID)
		ok(s.T, err)
		now = now.Add(30 * time.Second)
		report, err := d.DueRound(ctx)
		if err != nil || report != (events.Report{Checked: 2, Created: 1}) {
			s.Fatalf("report %+v, error %v", report, err)
		}
		_, err = d.SendRound(ctx)
		ok(s.T, err)
		want := fmt.Sprintf(`"type":"message_undelivered","user":"ann","clients":[{"client":"phone","id":%d},{"client":"tab","id":%d}],"data":"unread"}`,
			second[0].ID, second[1].ID)
		if len(sender.events) != 1 || !strings.HasSuffix(sender.events[0], want) {
			s.Errorf("events %s, want one that ends in %s", sender.events, want)
		}
	})
}

// TestAckGroup checks that a message counts as acknowledged by all clients of its acknowledgement
// group after one client has acknowledged it.
func TestAckGroup(t *testing.T) {
	eachStore(t, func(s *stores) {
		s.join("a")
		generation := s.bind("ann", "phone", "a")
		s.bind("ann", "tab", "a")
		ids := map[string]int64{}
		for _, client := range []string{"phone", "tab"} {
			a, err := s.queue.AppendClient(s.Context(), queue.ClientPush{Client: client, User: "ann", Data: []byte("1"), AckGroup: "g"})
			ok(s.T, err)
			ids[client] = a.ID
		}
		for _, acknowledged := range []bool{false, true} {
			for client, id := range ids {
				if got, err := New(s, s.queue).Acknowledged(s.Context(), client, id); got != acknowledged || err != nil {
					s.Errorf("%d of %s is acknowledged: %v, %v, want %v", id, client, got, err, acknowledged)
				}
			}
			_, err := s.queue.Ack(s.Context(), "phone", generation, ids["phone"])
			ok(s.T, err)
		}
	})
}
