package room_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/client"
	clientroom "switchboard/client/room"
	"switchboard/internal/await"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit/kittest"
	"switchboard/kit/room"
)

func TestMain(m *testing.M) { os.Exit(kittest.Main(m)) }

// world is the brokers of a test, and their rooms.
type world struct {
	*testing.T
	*kittest.Brokers
	rooms []*room.Rooms
	hosts []*extension.Host
}

// modes are those of the tests.
func modes() map[string]room.Mode {
	return map[string]room.Mode{
		"battle": {Capacity: 4, Grace: time.Hour},
		"racing": {Capacity: 8, Grace: time.Millisecond, HistoryAge: time.Hour},
		"closed": {MembersOnly: true},
	}
}

// each runs a test over each kind of store, with n brokers.
func each(t *testing.T, n int, test func(w *world)) {
	w := &world{}
	kittest.Each(t, n, func(o *broker.Options) {
		o.Extensions = append(o.Extensions, func(h *extension.Host) (extension.Extension, error) {
			rooms, err := room.New(h, room.Options{Modes: modes()})
			if err != nil {
				return extension.Extension{}, err
			}
			w.rooms, w.hosts = append(w.rooms, rooms), append(w.hosts, h)
			return rooms.Extension(), nil
		})
	}, func(t *testing.T, b *kittest.Brokers) {
		n := len(b.List)
		w.T, w.Brokers = t, b
		w.rooms, w.hosts = w.rooms[len(w.rooms)-n:], w.hosts[len(w.hosts)-n:]
		// A broker ends subscriptions on the servers that it knows.
		await.True(t, "the brokers know each other", func() bool {
			return !slices.ContainsFunc(b.List, func(one *kittest.Broker) bool { return len(one.Servers()) < n && !b.Memory })
		})
		test(w)
	})
}

// connect returns the rooms of a user that is connected to broker i.
func (w *world) connect(i int, user string) *clientroom.Rooms {
	return clientroom.New(w.At(i).Connect(w.T, user, nil))
}

func (w *world) create(r *clientroom.Rooms, o clientroom.CreateOptions) *clientroom.Room {
	w.Helper()
	created, err := r.Create(w.Context(), o)
	if err != nil {
		w.Fatal(err)
	}
	return created
}

func (w *world) join(r *clientroom.Rooms, id string, want int) *clientroom.Room {
	w.Helper()
	joined, err := r.Join(w.Context(), id, clientroom.JoinOptions{})
	if err != nil || joined.N != want {
		w.Fatalf("joined as %+v, %v, want the number %d", joined, err, want)
	}
	return joined
}

// refused fails the test unless err has the code.
func (w *world) refused(err error, want wire.ErrorCode) {
	w.Helper()
	if got := codeOf(err); got != string(want) {
		w.Fatalf("the error is %v, want %s", err, want)
	}
}

// codeOf returns the code of an error of the client or of an operation.
func codeOf(err error) string {
	if e, ok := errors.AsType[*client.Error](err); ok {
		return string(e.Code)
	}
	if e, ok := errors.AsType[*wire.Error](err); ok {
		return string(e.Code)
	}
	return fmt.Sprint(err)
}

// members returns the members of a room as text: the number, and * if the player is away, ? for a
// reservation.
func (w *world) members(id string) string {
	w.Helper()
	s, err := w.rooms[0].Read(w.Context(), id)
	if err != nil {
		return codeOf(err)
	}
	text := ""
	for _, m := range s.Members {
		text += fmt.Sprintf(" %d=%s", m.N, m.User)
		if m.Away {
			text += "*"
		}
		if m.Reserved {
			text += "?"
		}
	}
	return fmt.Sprintf("owner %d%s", s.Owner, text)
}

func (w *world) wantMembers(id, want string) {
	w.Helper()
	if got := w.members(id); got != want {
		w.Errorf("the members are %q, want %q", got, want)
	}
}

// fold applies the log of a room, and calls check after each entry.
func (w *world) fold(id string, check func(*state.Map, *state.Entry)) {
	w.Helper()
	fields := state.NewMap(0)
	for after := int64(0); ; {
		page, err := w.hosts[0].History(w.Context(), room.Channel(id), after, 100)
		if err != nil {
			w.Fatal(err)
		}
		for _, m := range page.Messages {
			if after = m.ID; state.IsEntry(m.Data) {
				e, err := state.DecodeEntry(m.Data)
				if err != nil {
					w.Fatal(err)
				}
				fields.Apply(m.ID, e)
				check(fields, e)
			}
		}
		if !page.More {
			return
		}
	}
}

// http makes an HTTP call, and fails the test unless it has the status. It returns the body.
func (w *world) http(status int, method, path string, body any, header ...string) map[string]any {
	w.Helper()
	text := []byte{}
	if body != nil {
		text, _ = json.Marshal(body)
	}
	var answer map[string]any
	if got := w.At(1).Call(w.T, method, path, string(text), &answer, header...); got != status {
		w.Fatalf("%s %s: %d %v, want %d", method, path, got, answer, status)
	}
	return answer
}

type object = map[string]any

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
