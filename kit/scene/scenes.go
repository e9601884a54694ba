package scene

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/rs/zerolog"

	"switchboard/broker/extension"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/budget"
)

// Scenes has the operations on avatars and scenes. Their errors are a *wire.Error, a
// *wire.DetailedError, or an error of the store:
//
//   - BadRequest, TooLarge: the arguments are invalid
//   - Forbidden: the avatar belongs to another user
//   - NotFound: there is no such avatar or scene, or it is deleted
//   - Conflict: the version differs, the name or the id is taken, or the avatar is in another scene
//   - Locked: the scene is closed
//   - Full: the scene has no place
//   - Unavailable: others change the same avatar or scene all the time; try again
type Scenes struct {
	host *extension.Host
	opts Options
	log  zerolog.Logger

	budget *budget.Budget
	// fault is called after each step of an operation. An error ends the operation there, as a crash
	// would. Only tests set it.
	fault func(step string) error
}

// New returns the avatars and scenes of a broker.
func New(host *extension.Host, opts Options) (*Scenes, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	s := &Scenes{host: host, opts: opts, log: host.Logger(), fault: func(string) error { return nil }}
	s.budget = s.newBudget()
	return s, nil
}

// Status is whether an avatar or a scene can be used.
type Status string

// The statuses.
const (
	Open    Status = "open"
	Closed  Status = "closed"  // only of a scene: no avatar may enter
	Deleted Status = "deleted" // only marked: the record stays
)

// formatVersion is the version of the format of records.
const formatVersion = 1

// write writes an update, and returns its id.
func (s *Scenes) write(ctx context.Context, channel string, u *state.Update) (int64, error) {
	u.Writer = state.BackendHolder
	done, err := s.host.Change(ctx, channel, u, extension.ChangeOptions{})
	return done.ID, err
}

// change is write, and kit.ErrChanged if a condition is not met.
func (s *Scenes) change(ctx context.Context, channel string, u *state.Update) (int64, error) {
	id, err := s.write(ctx, channel, u)
	return id, changed(err)
}

// changed returns kit.ErrChanged if err is the refusal of a condition, and otherwise err.
func changed(err error) error {
	if e, ok := errors.AsType[*state.Refusal](err); ok && e.Err.Code == wire.Conflict {
		return kit.ErrChanged
	}
	return err
}

// version is the condition that a field has not changed.
func version(field string, id int64) state.Condition { return state.Condition{Field: field, ID: id} }

func set(field string, value any) state.Op {
	return state.Op{Field: field, Kind: state.Set, Value: encode(value)}
}

func remove(field string) state.Op { return state.Op{Field: field, Kind: state.Delete} }

func encode(v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		panic(err) // impossible: the data of records is valid JSON
	}
	return text
}

// stored is a value and the id of its field. A nil *stored is an absent field.
type stored[T any] struct {
	value T
	id    int64
}

// decode returns the value of a field, which may be nil.
func decode[T any](f *state.Field) (*stored[T], error) {
	if f == nil {
		return nil, nil
	}
	r := &stored[T]{id: f.ID}
	return r, json.Unmarshal(f.Value, &r.value)
}

// newID returns a random id.
func newID() string { return rand.Text()[:16] }

// idOf returns the id of what a user creates: the one that the call names, or one for its key, or a
// new one.
func idOf(id, user, key string) string {
	if key != "" {
		return "key-" + kit.KeyedID(user, key)
	}
	return cmp.Or(id, newID())
}

// now returns the time for display. No decision depends on it.
func now() int64 { return time.Now().UnixMilli() }

// checkID returns an error unless id can be the id of an avatar or a scene, or a world.
func checkID(kind, id string) error {
	ok := id != "" && len(id) <= MaxID
	for i := range len(id) {
		c := id[i]
		ok = ok && ('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-' || c == '.')
	}
	if !ok {
		return wire.Errorf(wire.BadRequest, "%s: it has 1 to %d characters of A-Z a-z 0-9 . _ -", kind, MaxID)
	}
	return nil
}

// checkText returns an error unless text is one line of at most MaxName bytes.
func checkText(kind, text string) error {
	if len(text) > MaxName {
		return wire.Errorf(wire.TooLarge, "%s: %d bytes, at most %d are allowed", kind, len(text), MaxName)
	}
	for _, r := range text {
		if r == utf8.RuneError || unicode.IsControl(r) {
			return wire.Errorf(wire.BadRequest, "%s: it has a character that is not allowed", kind)
		}
	}
	return nil
}

func checkName(name string) error {
	if name == "" {
		return wire.Errorf(wire.BadRequest, "name: missing")
	}
	return checkText("name", name)
}

func checkData(data json.RawMessage) error {
	if len(data) > MaxData {
		return wire.Errorf(wire.TooLarge, "data: %d bytes, at most %d are allowed", len(data), MaxData)
	}
	return nil
}

// conflict is a Conflict with the current avatar or scene.
func conflict(current any, format string, args ...any) error {
	return &wire.DetailedError{Err: wire.Errorf(wire.Conflict, format, args...), Data: current}
}

func notFound(kind, id string) error {
	return wire.Errorf(wire.NotFound, "there is no %s %s", kind, id)
}

func inChannel(doing, channel string, err error) error {
	return fmt.Errorf("%s %s: %w", doing, channel, err)
}
