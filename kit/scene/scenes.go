package scene

import (
	"context"
	"crypto/rand"
	"encoding/json"
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
	store   kit.Store
	opts    Options
	log     zerolog.Logger
	avatars kit.Documents[*storedAvatar]
	scenes  kit.Documents[*storedScene]
	budget  *budget.Budget
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
	store := kit.HostStore(host)
	s := &Scenes{
		store: store, opts: opts, log: host.Logger(), fault: func(string) error { return nil },
		avatars: avatarsIn(store, opts.Avatars), scenes: scenesIn(store, opts.Scenes),
	}
	s.avatars.Delay, s.avatars.Log = opts.Delay, s.log
	s.scenes.Delay, s.scenes.Log = opts.Delay, s.log
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

// change writes an update, and returns its id. The error is kit.ErrChanged if a condition is not
// met.
func (s *Scenes) change(ctx context.Context, channel string, u *state.Update) (int64, error) {
	done, err := s.store.Change(ctx, channel, u, false)
	return done.ID, kit.IfChanged(err)
}

// checkVersion returns a conflict unless an avatar or a scene has the version that is wanted. Nil
// means any.
func checkVersion(kind, id string, want *int64, version int64, current any) error {
	if want == nil || *want == version {
		return nil
	}
	return wire.Errorf(wire.Conflict, "%s %s has version %d", kind, id, version).With(current)
}

// idOf returns the id of what a user creates, see kit.NewID.
func idOf(id, user, key string) string { return kit.NewID(id, user, key, rand.Text()[:16]) }

// now returns the time for display. No decision depends on it.
func now() int64 { return time.Now().UnixMilli() }

// checkID returns an error unless id can be the id of an avatar or a scene, or a world.
func checkID(kind, id string) error { return kit.CheckID(kind, id, MaxID, ". _ -") }

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

// allScenes is the list of all scenes, also of the deleted ones.
const allScenes = "all"

// takenVersion is the version of the card that earlier releases have stored before the record of an
// avatar.
const takenVersion = 1

// The lists of avatars and scenes. A deleted one is in the list with the prefix deleted: instead.
func userList(user string) string   { return "user:" + part(user) }
func sceneList(scene string) string { return "scene:" + scene }
func worldList(world string) string { return "world:" + world }
func deletedList(of string) string  { return "deleted:" + of }

// part returns text as a part of the name of a list or a field.
func part(text string) string { return kit.NamePart(text, 100) }
