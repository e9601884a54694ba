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

func (b *book) UsersChanged(_ context.Context, users ...string) []error {
	return b.note("user ", users)
}

func (b *book) ChannelsChanged(_ context.Context, channels ...string) []error {
	return b.note("channel ", channels)
}

func (b *book) note(kind string, names []string) []error {
	b.mu.Lock()
	defer b.mu.Unlock()
	errs := make([]error, len(names))
	for i, name := range names {
		b.notes, errs[i] = append(b.notes, kind+name), b.err
	}
	return errs
}

// broken is a registry that does nothing.
type broken struct{ Registry }

var errBroken = errors.New("broken")

func (broken) BindUsers(context.Context, []registry.UserBinding) []error { return []error{errBroken} }
func (broken) ReleaseUser(context.Context, string, string, int64) error  { return errBroken }
func (broken) ForgetUser(context.Context, string, string, int64) error   { return errBroken }
func (broken) BindChannel(context.Context, string, string) error         { return errBroken }
func (broken) UnbindChannel(context.Context, string, string) error       { return errBroken }

// calls are all that change something.
func calls(r Registry) []func(context.Context) error {
	return []func(context.Context) error{
		func(ctx context.Context) error {
			return r.BindUsers(ctx, []registry.UserBinding{{User: "ann", Binding: registry.Binding{Client: "phone", Server: "a", Generation: 1}}})[0]
		},
		func(ctx context.Context) error { return r.ReleaseUser(ctx, "bob", "phone", 1) },
		func(ctx context.Context) error { return r.ForgetUser(ctx, "cat", "phone", 1) },
		func(ctx context.Context) error { return r.BindChannel(ctx, "a", "news") },
		func(ctx context.Context) error { return r.UnbindChannel(ctx, "a", "chat") },
	}
}

func TestNoted(t *testing.T) {
	b := &book{}
	memory := registry.NewMemory(registry.Options{})
	r := New(memory, b, zerolog.Nop())
	for i, call := range calls(r) {
		if err := call(t.Context()); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if want := []string{"user ann", "user bob", "user cat", "channel news", "channel chat"}; !slices.Equal(b.notes, want) {
		t.Errorf("noted %v, want %v", b.notes, want)
	}
	if bindings, err := memory.User(t.Context(), "ann"); err != nil || len(bindings) != 1 {
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

// TestManyNoted: of many calls those that went well are noted, and each has its own error.
func TestManyNoted(t *testing.T) {
	b := &book{}
	r := New(some{registry.NewMemory(registry.Options{})}, b, zerolog.Nop())
	bind := func() (errs []error) {
		list := make([]registry.UserBinding, 3)
		for i, user := range []string{"ann", "bob", "cat"} {
			list[i] = registry.UserBinding{User: user, Binding: registry.Binding{Client: user + "-phone", Server: "a", Generation: 1}}
		}
		return append(r.BindUsers(t.Context(), list), r.BindChannels(t.Context(), "a", []string{"news", "chat", "jobs"})...)
	}
	for i, err := range bind() {
		if failed := i%3 == 1; errors.Is(err, errBroken) != failed || (err != nil) != failed {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if want := []string{"user ann", "user cat", "channel news", "channel jobs"}; !slices.Equal(b.notes, want) {
		t.Errorf("noted %v, want %v", b.notes, want)
	}
	b.err = errors.New("away")
	for i, err := range bind() {
		if failed := i%3 == 1; errors.Is(err, errBroken) != failed || errors.Is(err, b.err) == failed {
			t.Errorf("call %d that cannot be noted: %v", i, err)
		}
	}
}

// some is a registry in which the second call of many fails.
type some struct{ Registry }

func (s some) BindUsers(ctx context.Context, list []registry.UserBinding) []error {
	errs := s.Registry.BindUsers(ctx, list)
	errs[1] = errBroken
	return errs
}

func (s some) BindChannels(ctx context.Context, server string, channels []string) []error {
	errs := s.Registry.BindChannels(ctx, server, channels)
	errs[1] = errBroken
	return errs
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
