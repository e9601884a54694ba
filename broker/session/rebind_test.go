package session_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"switchboard/broker/binding"
	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// rebindCounter counts the calls that bind a client again, and can fail them.
type rebindCounter struct {
	session.Registry
	held, bound int
	fail        error
	loseAnswers bool // of BindUsers
}

func (r *rebindCounter) wrap(reg session.Registry) { r.Registry = reg }

func (r *rebindCounter) HoldClients(ctx context.Context, server string, clients []string) error {
	r.held += len(clients)
	return errors.Join(r.fail, r.Registry.HoldClients(ctx, server, clients))
}

func (r *rebindCounter) BindUsers(ctx context.Context, list []registry.UserBinding) []error {
	r.bound += len(list)
	errs := r.Registry.BindUsers(ctx, list)
	if r.loseAnswers {
		for i := range list {
			list[i].Watchers, errs[i] = nil, errors.New("no answer")
		}
	}
	return errs
}

// TestRebindWithoutAnswer lets the store restore an entry in a user's list without an answer. A
// comparison finds nothing to do then, but the servers that watch the user must be notified.
func TestRebindWithoutAnswer(t *testing.T) {
	const client = "ann/phone"
	calls := &rebindCounter{}
	var notified []string
	h := newUnconnected(t, session.Options{Registry: calls, Notify: session.Notify{UserChanged: func(_ string, watchers []string) {
		notified = append(notified, watchers...)
	}}}, unwrapped, []wire.Request{{Type: wire.TypeConnect, Client: "phone", User: "ann"}})
	h.received()
	ctx := t.Context()
	if err := h.registry.WatchUsers(ctx, "watcher", []string{"ann"})[0].Err; err != nil {
		t.Fatal(err)
	}
	record, _, _ := h.queue.Client(ctx, client)
	_, _ = h.registry.ReleaseUser(ctx, "ann", client, record.Generation)
	for _, step := range []struct {
		loseAnswers bool
		notified    []string
	}{{true, nil}, {false, []string{"watcher"}}, {false, nil}} {
		notified, calls.loseAnswers = nil, step.loseAnswers
		if _, err := h.Rebind(ctx, []binding.Lost{{Client: client, User: true}}); (err != nil) != step.loseAnswers {
			t.Error(err)
		}
		h.settle()
		if !slices.Equal(notified, step.notified) {
			t.Errorf("%+v: notified %v", step, notified)
		}
	}
}

// TestRebindOfRenamedServer finds the entry in a user's list that a renewal has written under the
// server's new id. The servers that watch the user may have read the list before, so they must be
// notified although nothing is lost.
func TestRebindOfRenamedServer(t *testing.T) {
	const client = "ann/phone"
	var notified []string
	h := newUnconnected(t, session.Options{Notify: session.Notify{UserChanged: func(_ string, watchers []string) {
		notified = append(notified, watchers...)
	}}}, unwrapped, []wire.Request{{Type: wire.TypeConnect, Client: "phone", User: "ann"}})
	h.received()
	if err := h.registry.WatchUsers(t.Context(), "watcher", []string{"ann"})[0].Err; err != nil {
		t.Fatal(err)
	}
	for _, renamed := range []bool{false, true} {
		notified = nil
		if _, err := h.Rebind(t.Context(), []binding.Lost{{Client: client, User: true, Renamed: renamed}}); err != nil {
			t.Error(err)
		}
		h.settle()
		if (len(notified) > 0) != renamed {
			t.Errorf("renamed %v: notified %v", renamed, notified)
		}
	}
}

// TestRebind checks that Rebind writes and reads only what the store has lost.
func TestRebind(t *testing.T) {
	const client = "ann/phone"
	calls := &rebindCounter{}
	h := newUnconnected(t, session.Options{Registry: calls}, unwrapped, []wire.Request{{Type: wire.TypeConnect, Client: "phone", User: "ann"}})
	h.received()
	held := h.Held()
	if len(held) != 1 || held[0] != (session.HeldClient{Client: client, Recent: true}) {
		t.Fatalf("held %v", held)
	}
	rebind := func(lost binding.Lost) {
		t.Helper()
		lost.Client, calls.held, calls.bound = client, 0, 0
		if failed, err := h.Rebind(t.Context(), []binding.Lost{lost, {Client: "ann/other", Record: true}}); err != nil || failed != nil {
			t.Error(failed, err)
		}
		h.settle()
	}
	ctx := t.Context()
	record, _, _ := h.queue.Client(ctx, client)
	_, _, _, _ = h.queue.Release(ctx, client, "me")
	_, _ = h.registry.ReleaseUser(ctx, "ann", client, record.Generation)
	_ = h.registry.DropClient(ctx, "me", client)
	if _, err := h.queue.AppendClient(ctx, queue.ClientPush{Client: client, Data: []byte("1")}); err != nil { // without a hint
		t.Fatal(err)
	}

	rebind(binding.Lost{})
	if clients, _ := h.registry.HeldClients(ctx, "me", 9); !slices.Equal(clients, []string{client}) || calls.bound != 0 {
		t.Errorf("held %v, %d users bound", clients, calls.bound)
	}
	if c, _, _ := h.queue.Client(ctx, client); c.Server != "" || len(h.received()) != 0 {
		t.Error("the record was renewed, although its slot lost nothing")
	}
	rebind(binding.Lost{User: true})
	if bindings, _ := h.registry.User(ctx, "ann"); calls.bound != 1 || bindings[0].Server != "me" {
		t.Errorf("%d users bound: %v", calls.bound, bindings)
	}
	rebind(binding.Lost{User: true})
	if calls.bound != 0 {
		t.Error("an entry that is there was written again")
	}
	rebind(binding.Lost{Record: true})
	if c, _, _ := h.queue.Client(ctx, client); c.Server != "me" || types(h.received()) != "message" {
		t.Errorf("the record names %q, or the message is missing", c.Server)
	}
	calls.fail = errors.New("unavailable")
	if failed, err := h.Rebind(ctx, []binding.Lost{{Client: client}}); !errors.Is(err, calls.fail) || !slices.Equal(failed, []string{client}) {
		t.Errorf("failed %v, %v", failed, err)
	}
}
