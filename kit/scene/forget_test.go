package scene_test

import (
	"testing"

	clientscene "switchboard/client/scene"
	"switchboard/kit/index"
	"switchboard/kit/scene"
)

// TestForget checks that the avatars of a user that has ended end, also deleted ones and those in a
// scene, that other users keep theirs, and that the budget is free.
func TestForget(t *testing.T) {
	eachWorld(t, func(o *scene.Options) { o.PerUser = 2 }, func(w *world) {
		w.newScene("town")
		amy := w.play(0, "amy", "phone")
		own, err := amy.CreateAvatar(w.Context(), clientscene.NewAvatar{Name: "Zoe"})
		w.must(err)
		w.newAvatar("gift", "amy")
		w.newAvatar("old", "amy")
		w.newAvatar("other", "bob")
		_, err = w.at(0).DeleteAvatar(w.Context(), "old", nil, nil)
		w.must(err)
		w.transfer("gift", "town")
		for i, want := range []int{3, 0} { // a repetition finds none
			removed, err := w.host().Forget(w.Context(), "amy", "zoe")
			if w.must(err); removed["avatars"] != want {
				t.Errorf("attempt %d: %v were removed, want %d", i, removed, want)
			}
		}
		for id, there := range map[string]bool{own.ID: false, "gift": false, "old": false, "other": true} {
			if _, err := w.at(1).GetAvatar(w.Context(), id); (err == nil) != there {
				t.Errorf("avatar %s: %v", id, err)
			}
		}
		w.wantPlaces("town")
		counts, err := w.opts.Avatars.Count(w.Context(), "user:amy", "deleted:user:amy", "user:bob")
		if w.must(err); counts[0]+counts[1] != 0 || counts[2] != 1 {
			t.Errorf("the lists have %v", counts)
		}
		for range 2 {
			_, err := amy.CreateAvatar(w.Context(), clientscene.NewAvatar{Name: "Zoe"})
			w.must(err)
		}
		page, err := w.opts.Avatars.List(w.Context(), index.Query{List: "user:amy"})
		if w.must(err); len(page.Cards) != 2 {
			t.Errorf("amy has %v", page.Cards)
		}
		w.wantChecked()
	})
}
