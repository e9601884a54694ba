package recording

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

// fakeRecorder is a Recorder that stores the names of its calls. All its calls return err.
type fakeRecorder struct {
	mu    sync.Mutex // guards calls
	calls []string
	err   error
}

func (f *fakeRecorder) UsersChanged(_ context.Context, users ...string) []error {
	return f.record("user ", users)
}

func (f *fakeRecorder) ChannelsChanged(_ context.Context, channels ...string) []error {
	return f.record("channel ", channels)
}

func (f *fakeRecorder) record(kind string, names []string) []error {
	f.mu.Lock()
	defer f.mu.Unlock()
	errs := make([]error, len(names))
	for i, name := range names {
		f.calls, errs[i] = append(f.calls, kind+name), f.err
	}
	return errs
}

// failing is a registry whose calls fail.
type failing struct{ Registry }

var errFailing = errors.New("the call fails")

func (failing) BindUsers(context.Context, []registry.UserBinding) []error { return []error{errFailing} }
func (failing) ReleaseUser(context.Context, string, string, int64) ([]string, error) {
	return nil, errFailing
}
func (failing) ForgetUser(context.Context, string, string, int64) error { return errFailing }
func (failing) BindChannel(context.Context, string, string) error       { return errFailing }
func (failing) UnbindChannel(context.Context, string, string) error     { return errFailing }

// calls returns one call of each method for a single user or channel.
func calls(r Registry) []func(context.Context) error {
	return []func(context.Context) error{
		func(ctx context.Context) error {
			return r.BindUsers(ctx, []registry.UserBinding{{User: "ann", Binding: registry.Binding{Client: "phone", Server: "a", Generation: 1}}})[0]
		},
		func(ctx context.Context) error {
			_, err := r.ReleaseUser(ctx, "bob", "phone", 1)
			return err
		},
		func(ctx context.Context) error { return r.ForgetUser(ctx, "cat", "phone", 1) },
		func(ctx context.Context) error { return r.BindChannel(ctx, "a", "news") },
		func(ctx context.Context) error { return r.UnbindChannel(ctx, "a", "chat") },
	}
}

func TestRecorded(t *testing.T) {
	recorder := &fakeRecorder{}
	memory := registry.NewMemory(registry.Options{})
	r := Wrap(memory, recorder, zerolog.Nop())
	for i, call := range calls(r) {
		if err := call(t.Context()); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if want := []string{"user ann", "user bob", "user cat", "channel news", "channel chat"}; !slices.Equal(recorder.calls, want) {
		t.Errorf("recorded %v, want %v", recorder.calls, want)
	}
	if bindings, err := memory.User(t.Context(), "ann"); err != nil || len(bindings) != 1 {
		t.Errorf("the registry has the bindings %v, error %v", bindings, err)
	}
}

func TestFailedCallsAreNotRecorded(t *testing.T) {
	recorder := &fakeRecorder{}
	for i, call := range calls(Wrap(failing{}, recorder, zerolog.Nop())) {
		if err := call(t.Context()); !errors.Is(err, errFailing) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if len(recorder.calls) > 0 {
		t.Errorf("recorded %v", recorder.calls)
	}
}

// TestBatch checks that the successful calls of a batch are recorded, and that each call has its
// own error.
func TestBatch(t *testing.T) {
	recorder := &fakeRecorder{}
	r := Wrap(secondFails{registry.NewMemory(registry.Options{})}, recorder, zerolog.Nop())
	bind := func() (errs []error) {
		list := make([]registry.UserBinding, 3)
		for i, user := range []string{"ann", "bob", "cat"} {
			list[i] = registry.UserBinding{User: user, Binding: registry.Binding{Client: user + "-phone", Server: "a", Generation: 1}}
		}
		return append(r.BindUsers(t.Context(), list), r.BindChannels(t.Context(), "a", []string{"news", "chat", "jobs"})...)
	}
	for i, err := range bind() {
		if failed := i%3 == 1; errors.Is(err, errFailing) != failed || (err != nil) != failed {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if want := []string{"user ann", "user cat", "channel news", "channel jobs"}; !slices.Equal(recorder.calls, want) {
		t.Errorf("recorded %v, want %v", recorder.calls, want)
	}
	recorder.err = errors.New("the recorder fails")
	for i, err := range bind() {
		if failed := i%3 == 1; errors.Is(err, errFailing) != failed || errors.Is(err, recorder.err) == failed {
			t.Errorf("call %d with a failing recorder: %v", i, err)
		}
	}
}

// secondFails is a registry in which the second call of a batch fails.
type secondFails struct{ Registry }

func (s secondFails) BindUsers(ctx context.Context, list []registry.UserBinding) []error {
	errs := s.Registry.BindUsers(ctx, list)
	errs[1] = errFailing
	return errs
}

func (s secondFails) BindChannels(ctx context.Context, server string, channels []string) []error {
	errs := s.Registry.BindChannels(ctx, server, channels)
	errs[1] = errFailing
	return errs
}

func TestRecorderFails(t *testing.T) {
	var log bytes.Buffer
	recorder := &fakeRecorder{err: errors.New("the recorder fails")}
	r := Wrap(registry.NewMemory(registry.Options{}), recorder, zerolog.New(&log))
	for i, call := range calls(r) {
		if err := call(t.Context()); !errors.Is(err, recorder.err) {
			t.Errorf("call %d: %v", i, err)
		}
	}
	recorder.err = fmt.Errorf("schedule: %w", events.ErrFull)
	for i, call := range calls(r) {
		if err := call(t.Context()); err != nil {
			t.Errorf("call %d with a full due list: %v", i, err)
		}
	}
	if n := strings.Count(log.String(), "not recorded"); n != 1 {
		t.Errorf("%d log lines: %s", n, &log)
	}
}
