package noting

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rs/zerolog"

	"switchboard/events"
	"switchboard/registry"
)

// book is a recorder that remembers what it was told, or fails.
type book struct {
	mu    sync.Mutex // guards notes
	notes []string
	err   error
}

func (b *book) UserChanged(_ context.Context, user string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes = append(b.notes, "user "+user)
	return b.err
}

func (b *book) ChannelChanged(_ context.Context, channel string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notes = append(b.notes, "channel "+channel)
	return b.err
}

// broken is a registry that does nothing.
type broken struct{ registry.Registry }

var errBroken = errors.New("broken")

func (broken) BindUser(context.Context, string, registry.Binding) error { return errBroken }
func (broken) ReleaseUser(context.Context, string, string, int64) error { return errBroken }
func (broken) ForgetUser(context.Context, string, string, int64) error  { return errBroken }
func (broken) BindChannel(context.Context, string, string) error        { return errBroken }
func (broken) UnbindChannel(context.Context, string, string) error      { return errBroken }

// calls are all that change something.
func calls(r registry.Registry) []func(context.Context) error {
	return []func(context.Context) error{
		func(ctx context.Context) error {
			return r.BindUser(ctx, "ann", registry.Binding{Client: "phone", Server: "a", Generation: 1})
		},
		func(ctx context.Context) error { return r.ReleaseUser(ctx, "bob", "phone", 1) },
		func(ctx context.Context) error { return r.ForgetUser(ctx, "cat", "phone", 1) },
		func(ctx context.Context) error { return r.BindChannel(ctx, "a", "news") },
		func(ctx context.Context) error { return r.UnbindChannel(ctx, "a", "chat") },
	}
}

func TestNoted(t *testing.T) {
	b := &book{}
	r := New(registry.NewMemory(registry.Options{}), b, zerolog.Nop())
	for i, call := range calls(r) {
		if err := call(t.Context()); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if want := []string{"user ann", "user bob", "user cat", "channel news", "channel chat"}; !slices.Equal(b.notes, want) {
		t.Errorf("noted %v, want %v", b.notes, want)
	}
	if bindings, err := r.User(t.Context(), "ann"); err != nil || len(bindings) != 1 {
		t.Errorf("it was not passed on: %v, %v", bindings, err)
	}
}

func TestNothingNotedOfWhatFailed(t *testing.T) {
	b := &book{}
	for i, call := range calls(New(broken{}, b, zerolog.Nop())) {
		if err := call(t.Context()); !errors.Is(err, errBroken) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if len(b.notes) > 0 {
		t.Errorf("noted %v", b.notes)
	}
}

func TestNotNoted(t *testing.T) {
	var log bytes.Buffer
	b := &book{err: errors.New("away")}
	r := New(registry.NewMemory(registry.Options{}), b, zerolog.New(&log))
	for i, call := range calls(r) {
		if err := call(t.Context()); !errors.Is(err, b.err) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	b.err = fmt.Errorf("note: %w", events.ErrFull)
	for i, call := range calls(r) {
		if err := call(t.Context()); err != nil {
			t.Errorf("call %d with a full list: %v", i, err)
		}
	}
	if n := strings.Count(log.String(), "not noted"); n != 1 {
		t.Errorf("%d lines in the log: %s", n, &log)
	}
}
