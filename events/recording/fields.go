package recording

import (
	"bytes"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"switchboard/events"
	"switchboard/queue"
)

// maxKnown is the most channels that a Fields knows, about 10 MB. Above that it forgets all.
const maxKnown = 1 << 16

// FieldsRecorder tracks channels and schedules checks of their fields. [events.Recorder] implements
// it.
type FieldsRecorder interface {
	TrackFields(ctx context.Context, channels ...string) []error
	FieldsDue(ctx context.Context, dues ...events.FieldsDue) []error
}

// Fields calls a recorder before and after the updates of states. It knows which channels are
// tracked and when their next checks are, so most updates need no call.
type Fields struct {
	recorder FieldsRecorder
	epoch    func() uint64
	log      zerolog.Logger
	now      func() time.Time

	mu    sync.Mutex // guards the fields below
	known map[string]known
	// knownEpoch is the epoch of known. If the store lost its last writes, known may be wrong.
	knownEpoch uint64
}

// known is what a Fields knows of a channel.
type known struct {
	until time.Time // the channel is tracked until then, at least
	due   int64     // a check is due then, or earlier, Unix ms; 0 for none
}

// NewFields returns a Fields. epoch returns a number that changes when the store may have lost its
// last writes; nil means that it never does. Fields logs at most once a minute that a call failed.
func NewFields(recorder FieldsRecorder, epoch func() uint64, log zerolog.Logger) *Fields {
	if epoch == nil {
		epoch = func() uint64 { return 0 }
	}
	return &Fields{
		recorder: recorder, epoch: epoch, log: log.Sample(&zerolog.BurstSampler{Burst: 1, Period: time.Minute}),
		now: time.Now, known: map[string]known{},
	}
}

// Track tracks the channels. Call it before updates of their states. An error means that a field
// that ends may not be reported; the update must not be made. [events.ErrFull] is only logged. The
// errors are in the order of the channels.
func (f *Fields) Track(ctx context.Context, channels []string) []error {
	errs := make([]error, len(channels))
	epoch, until := f.epoch(), f.now().Add(events.TrackFor) // before the call, so that known is not too late
	names, indexes := f.untracked(channels, epoch)
	if len(names) == 0 {
		return errs
	}
	results := f.recorder.TrackFields(ctx, names...)
	f.mu.Lock()
	defer f.mu.Unlock()
	for k, err := range results {
		switch {
		case errors.Is(err, events.ErrFull):
			f.log.Error().Err(err).Msg("fields that end are not reported: too many channels have states")
		case err != nil:
			errs[indexes[k]] = err
		case f.knownEpoch == epoch:
			f.known[names[k]] = known{until: until, due: f.known[names[k]].due}
		}
	}
	return errs
}

// untracked returns the channels that must be tracked, and their indexes.
func (f *Fields) untracked(channels []string, epoch uint64) (names []string, indexes []int) {
	now := f.now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.knownEpoch != epoch || len(f.known) > maxKnown {
		clear(f.known)
		f.knownEpoch = epoch
	}
	for i, channel := range channels {
		if !now.Before(f.known[channel].until) {
			names, indexes = append(names, channel), append(indexes, i)
		}
	}
	return names, indexes
}

// Changed schedules the checks of channels whose states have changed. If that fails, or is not
// called, a sweep of the dispatchers schedules them later. changes are in the order of the
// channels.
func (f *Fields) Changed(ctx context.Context, channels []string, changes []queue.Appended) {
	dues := f.unscheduled(channels, changes)
	if len(dues) == 0 {
		return
	}
	errs := f.recorder.FieldsDue(ctx, dues...)
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, due := range dues {
		if errs[i] != nil {
			f.log.Warn().Err(errs[i]).Str("channel", due.Channel).Msg("a check of fields that end is late")
		} else if k, found := f.known[due.Channel]; found && due.At > 1 {
			f.known[due.Channel] = known{until: k.until, due: due.At}
		}
	}
}

// unscheduled returns the checks that changes need, without those that are known to be scheduled.
func (f *Fields) unscheduled(channels []string, changes []queue.Appended) (dues []events.FieldsDue) {
	now := f.now().UnixMilli()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, change := range changes {
		at := change.Due
		if hasEnded(change.Data) {
			at = 1
		}
		if k := f.known[channels[i]]; at > 0 && (at < k.due || k.due <= now) {
			dues = append(dues, events.FieldsDue{Channel: channels[i], At: at})
		}
	}
	return dues
}

// hasEnded reports whether an entry may be about fields that have ended. A value may look alike;
// then a check finds nothing.
func hasEnded(entry []byte) bool {
	return bytes.Contains(entry, []byte(`"gone":{`)) || bytes.Contains(entry, []byte(`"cleared":true`))
}
