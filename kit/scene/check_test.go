package scene_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"switchboard/internal/state"
	"switchboard/kit/index"
	"switchboard/kit/scene"
)

// TestChecks checks what the checks find.
func TestChecks(t *testing.T) {
	eachWorld(t, nil, func(w *world) {
		w.newScene("town", "wood")
		w.newAvatar("a1", "amy")
		w.transfer("a1", "town")
		w.wantChecked()
		set := func(field, value string) state.Op {
			return state.Op{Field: field, Kind: state.Set, Value: []byte(value)}
		}
		for _, c := range []struct {
			lists index.Index
			card  index.Card
		}{
			{w.opts.Avatars, index.Card{ID: "a1", Version: 1 << 62}}, {w.opts.Scenes, index.Card{ID: "wood", Version: 1 << 62}},
			{w.opts.Scenes, index.Card{ID: "sea", Version: 7, Lists: map[string]int64{"all": 7}}},
			{w.opts.Scenes, index.Card{ID: "town", Version: 1 << 61, Lists: map[string]int64{"all": 7}}},
		} {
			w.must(c.lists.Put(w.Context(), c.card))
		}
		v, err := w.at(0).GetScene(w.Context(), "town")
		w.must(err)
		w.change("scene:wood", set("pc/a1", `{"name":"x"}`), set("pc/a9", `{"name":"x"}`))
		w.change("scene:town", state.Op{Field: "pc/a1", Kind: state.Touch, TTL: time.Hour})
		w.change("world:earth", state.Op{Field: "$$scene/wood", Kind: state.Delete}, set("$$scene/moon", `"town"`))
		found := fmt.Sprintf("%q", w.check())
		want := `["avatar:a1: it has no card"` +
			` "scene:sea: it has a card, but no record"` +
			fmt.Sprintf(` "scene:town: its card is not that of the record with the id %d"`, v.Version) +
			` "scene:town: pc/a1: the place has a lease, but the avatar is there"` +
			` "scene:wood: $$scene/wood of world:earth does not have this scene"` +
			` "scene:wood: it has no card"` +
			` "scene:wood: pc/a1: the record of the avatar names the scene \"town\""` +
			` "scene:wood: pc/a9: there is no such avatar"` +
			` "world:earth: $$scene/moon names the scene town, which does not have the name"]`
		if found != want {
			t.Errorf("found %s\nwant %s", found, want)
		}
	})
}

// TestNewerFormat: a record of a newer release is neither read nor changed, because a change would
// lose what this release does not know.
func TestNewerFormat(t *testing.T) {
	eachWorld(t, nil, func(w *world) {
		w.newScene("town")
		w.newAvatar("a1", "amy")
		set := func(field, value string) state.Op {
			return state.Op{Field: field, Kind: state.Set, Value: []byte(value)}
		}
		w.change("avatar:a1", set("$$avatar", `{"v":2,"user":"amy","name":"x","status":"open","created":1}`))
		w.change("scene:town", set("$scene", `{"v":2,"world":"earth","name":"town","status":"open","created":1}`))
		name := "y"
		for what, err := range map[string]error{
			"get of the avatar":   second(w.at(0).GetAvatar(w.Context(), "a1")),
			"patch of the avatar": second(w.at(0).PatchAvatar(w.Context(), "a1", nil, scene.AvatarPatch{Name: &name})),
			"get of the scene":    second(w.at(0).GetScene(w.Context(), "town")),
			"patch of the scene":  second(w.at(0).PatchScene(w.Context(), "town", scene.ScenePatch{Name: &name})),
		} {
			if err == nil || !strings.Contains(err.Error(), "version 2") {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

func second[T any](_ T, err error) error { return err }
