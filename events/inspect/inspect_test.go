package inspect

import (
	"errors"
	"slices"
	"testing"
	"time"

	"switchboard/events"
	"switchboard/registry"
)

func TestReceiver(t *testing.T) {
	i := New(events.NewMemory(events.StoreOptions{}), "https://user:secret@backend.example.com/in?key=secret#x", nil)
	b, err := i.Backlog(t.Context())
	if err != nil || b.Endpoints[0].URL != "https://backend.example.com/in" || len(b.Endpoints[0].Events) != len(events.Kinds) {
		t.Errorf("%+v, %v", b, err)
	}
	i = New(events.NewMemory(events.StoreOptions{}), "https://backend.example.com/", []events.Kind{events.UserOnline})
	if b, _ := i.Backlog(t.Context()); !slices.Equal(b.Endpoints[0].Events, []string{"user_online"}) {
		t.Errorf("wanted events: %+v", b)
	}
}

// TestDeadLetter: an event that is refused is listed with its id, and sent again after Retry.
func TestDeadLetter(t *testing.T) {
	store := events.NewMemory(events.StoreOptions{})
	i := New(store, "https://backend.example.com/", nil)
	started := time.Now().UnixMilli()
	if errs := store.Schedule(t.Context(), 0, events.Check{Shard: 3, Entry: "u:alice"}); errs[0] != nil {
		t.Fatal(errs[0])
	}
	claims, err := store.Claim(t.Context(), 3, 1, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	result := events.CheckResult{Claim: claims[0], Present: true, Event: []byte(`"type":"user_online","user":"alice"}`)}
	if _, err := store.Settle(t.Context(), 3, result); err != nil {
		t.Fatal(err)
	}
	waiting, _ := i.Backlog(t.Context())
	if waiting.Waiting != 1 || waiting.Dead != 0 || waiting.Oldest < started {
		t.Errorf("while it waits: %+v", waiting)
	}
	batch, err := store.Take(t.Context(), 3, 10, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Refused(t.Context(), batch, batch.Events[0].Seq, events.Refused, 0); err != nil {
		t.Fatal(err)
	}
	letters, next, err := i.DeadLetters(t.Context(), "", 10)
	if err != nil || next != "" || len(letters) != 1 {
		t.Fatalf("%v, next %q, %v", letters, next, err)
	}
	if l := letters[0]; l.ID == "" || l.Reason != "refused" || l.At < started || string(l.Event) != string(batch.Events[0].Event) {
		t.Errorf("letter %+v", l)
	}
	if _, _, err := i.DeadLetters(t.Context(), "x", 10); !errors.Is(err, registry.ErrBadCursor) {
		t.Errorf("a malformed cursor: %v", err)
	}
	if n, err := i.Retry(t.Context()); n != 1 || err != nil {
		t.Errorf("Retry: %d, %v", n, err)
	}
	if b, _ := i.Backlog(t.Context()); b.Waiting != 1 || b.Dead != 0 {
		t.Errorf("after Retry: %+v", b)
	}
}
