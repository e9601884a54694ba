package recording

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rs/zerolog"

	"switchboard/events"
	"switchboard/queue"
)

// fakeFieldsRecorder stores the calls, and returns err.
type fakeFieldsRecorder struct {
	calls []string
	err   error
}

func (f *fakeFieldsRecorder) TrackFields(_ context.Context, channels ...string) []error {
	f.calls = append(f.calls, "track "+strings.Join(channels, " "))
	return slices.Repeat([]error{f.err}, len(channels))
}

func (f *fakeFieldsRecorder) FieldsDue(_ context.Context, dues ...events.FieldsDue) []error {
	f.calls = append(f.calls, fmt.Sprint("due ", dues))
	return slices.Repeat([]error{f.err}, len(dues))
}

// fieldsTest is a Fields with a recorder, a clock and an epoch.
type fieldsTest struct {
	*testing.T
	*Fields
	recorder fakeFieldsRecorder
	clock    time.Time
	epoch    uint64
	log      bytes.Buffer
}

func newFieldsTest(t *testing.T) *fieldsTest {
	f := &fieldsTest{T: t, clock: time.UnixMilli(1_800_000_000_000)}
	f.Fields = NewFields(&f.recorder, func() uint64 { return f.epoch }, zerolog.New(&f.log))
	f.now = func() time.Time { return f.clock }
	return f
}

// want checks the calls since the last check.
func (f *fieldsTest) want(what string, calls ...string) {
	f.Helper()
	if !slices.Equal(f.recorder.calls, calls) {
		f.Errorf("%s: calls %q, want %q", what, f.recorder.calls, calls)
	}
	f.recorder.calls = nil
}

func (f *fieldsTest) track(channels ...string) error {
	f.Helper()
	errs := f.Track(f.Context(), channels)
	if len(errs) != len(channels) {
		f.Fatalf("%d errors", len(errs))
	}
	return errors.Join(errs...)
}

func (f *fieldsTest) changed(channel string, due time.Duration, entry string) {
	a := queue.Appended{Data: []byte(entry)}
	if due > 0 {
		a.Due = f.clock.Add(due).UnixMilli()
	}
	f.Changed(f.Context(), []string{channel}, []queue.Appended{a})
}

func TestTrack(t *testing.T) {
	f := newFieldsTest(t)
	f.track("a", "b")
	f.track("b", "c", "a")
	f.want("new channels", "track a b", "track c")
	f.clock = f.clock.Add(events.TrackFor - 1)
	f.track("a", "b", "c")
	f.want("tracked channels")
	f.clock = f.clock.Add(1)
	f.track("a")
	f.want("a channel whose time has ended", "track a")
	f.epoch++
	f.track("a")
	f.track("a")
	f.want("a channel after the store lost writes", "track a")
	for i := range maxKnown + 1 {
		f.track(fmt.Sprint(i))
	}
	f.recorder.calls = nil
	f.track("a")
	if f.want("a channel after too many", "track a"); len(f.known) > 2 {
		t.Errorf("%d known channels, want at most 2", len(f.known))
	}
}

func TestTrackFails(t *testing.T) {
	f := newFieldsTest(t)
	f.recorder.err = errors.New("no answer")
	if err := f.track("a"); err == nil {
		t.Error("no error")
	}
	f.recorder.err = fmt.Errorf("track: %w", events.ErrFull)
	if err := f.track("a"); err != nil || !strings.Contains(f.log.String(), "too many channels") {
		t.Errorf("full: %v; log %s", err, f.log.String())
	}
	f.recorder.err = nil
	if err := f.track("a"); err != nil {
		t.Error(err)
	}
	f.want("failing calls", "track a", "track a", "track a")
}

func TestChanged(t *testing.T) {
	f := newFieldsTest(t)
	at := func(d time.Duration) string { return fmt.Sprint("due [{a ", f.clock.Add(d).UnixMilli(), "}]") }
	f.track("a")
	f.recorder.calls = nil
	f.changed("a", 0, `~{"set":{"x":1}}`)
	f.want("a change without an end")
	f.changed("a", time.Minute, "")
	f.changed("a", time.Minute, "")
	f.changed("a", time.Hour, "")
	f.want("an end that is known", at(time.Minute))
	f.changed("a", time.Second, "")
	f.want("an earlier end", at(time.Second))
	f.changed("a", time.Minute, `~{"gone":{"x":"left"}}`)
	f.changed("a", 0, `~{"cleared":true}`)
	f.want("fields that have ended", "due [{a 1}]", "due [{a 1}]")
	f.clock = f.clock.Add(time.Second)
	f.changed("a", time.Minute, "")
	f.want("an end after the known one has passed", at(time.Minute))
	f.recorder.err = errors.New("no answer")
	f.changed("a", time.Second, "")
	f.changed("a", time.Second, "")
	f.want("failing calls", at(time.Second), at(time.Second))
	if !strings.Contains(f.log.String(), "no answer") {
		t.Errorf("log %s", f.log.String())
	}
}
