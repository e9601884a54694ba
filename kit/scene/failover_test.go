package scene_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"switchboard/internal/await"
	"switchboard/janitor/task"
	"switchboard/kit/kittest"
	"switchboard/kit/scene"
)

// TestFailover makes random changes and then loses those of the lists: the store that fails over
// has the lists of an earlier moment, with their due lists, or none. The rounds of the janitor and
// of the brokers bring back each card, also those that are there and old.
func TestFailover(t *testing.T) {
	kittest.EachStore(t, func(t *testing.T, s kittest.Store) {
		if !s.Shared {
			return
		}
		seed := rand.Uint64()
		w := &failoverWorld{world: openWorld(t, s, nil), Rand: rand.New(rand.NewPCG(seed, 0))}
		restore := scene.Restore(w.stores())
		w.restore(restore) // the first one counts
		for range 10 {
			lost := []string{"avatars", "scenes"}[w.IntN(2)]
			var saved map[string]string // none: everything is lost
			for range w.IntN(8) {
				w.step()
			}
			if w.IntN(4) > 0 {
				saved = w.save(lost)
			}
			for range 10 {
				w.step()
			}
			w.load(lost, saved)
			w.restore(restore)
			await.True(t, "the brokers have computed the cards", func() bool {
				_, err := w.at(w.IntN(3)).Round(t.Context())
				w.must(err)
				return len(w.check()) == 0
			})
			w.wantLists()
			if n := w.restore(restore); n != 0 {
				t.Errorf("restored %d, though nothing is lost", n)
			}
			if t.Failed() {
				t.Fatalf("the seed is %d", seed)
			}
		}
	})
}

// failoverWorld is a world with its avatars and scenes.
type failoverWorld struct {
	*world
	*rand.Rand
	avatars, scenes []string
}

// restore makes the rounds of the janitor, and returns how many cards were lost.
func (w *failoverWorld) restore(rounds []task.Round) (restored int) {
	w.Helper()
	for _, round := range rounds {
		n, err := round.Do(w.Context())
		w.must(err)
		restored += n
	}
	return restored
}

func (w *failoverWorld) user() string { return fmt.Sprint("user", w.IntN(3)) }

// step makes a random change. Some are refused: the scene is deleted, or the name is taken.
func (w *failoverWorld) step() {
	s, ctx := w.at(w.IntN(3)), w.Context()
	if len(w.avatars) == 0 || len(w.scenes) == 0 || w.IntN(4) == 0 {
		id := fmt.Sprint("x", len(w.avatars)+len(w.scenes))
		var err error
		if w.scenes = append(w.scenes, id); len(w.avatars) < len(w.scenes) {
			w.scenes, w.avatars = w.scenes[:len(w.scenes)-1], append(w.avatars, id)
			_, err = s.CreateAvatar(ctx, scene.NewAvatar{ID: id, User: w.user(), Name: id})
		} else {
			_, err = s.CreateScene(ctx, scene.NewScene{ID: id, World: "earth", Name: id})
		}
		w.must(err)
		return
	}
	avatar, in := w.avatars[w.IntN(len(w.avatars))], w.scenes[w.IntN(len(w.scenes))]
	switch w.IntN(6) {
	case 0, 1:
		_, _ = s.Transfer(ctx, scene.Transfer{Avatar: avatar, Scene: in})
	case 2:
		_, _ = s.Leave(ctx, avatar)
	case 3:
		status := []scene.Status{scene.Open, scene.Deleted}[w.IntN(2)]
		_, _ = s.PatchAvatar(ctx, avatar, nil, scene.AvatarPatch{Status: &status})
	case 4:
		status := []scene.Status{scene.Open, scene.Closed, scene.Deleted}[w.IntN(3)]
		_, _ = s.PatchScene(ctx, in, scene.ScenePatch{Status: &status})
	default:
		name := fmt.Sprint("name", w.IntN(10))
		_, _ = s.PatchScene(ctx, in, scene.ScenePatch{Name: &name})
	}
}

// keys returns the keys of an index.
func (w *failoverWorld) keys(index string) (keys []string) {
	w.Helper()
	for key, err := range w.store.Pipe.Keys(w.Context(), w.store.Prefix+"ix_*") {
		w.must(err)
		if strings.Contains(key, "{"+index+"}") {
			keys = append(keys, key)
		}
	}
	return keys
}

// save returns what the store has of an index.
func (w *failoverWorld) save(index string) map[string]string {
	w.Helper()
	saved := map[string]string{}
	for _, key := range w.keys(index) {
		text, err := w.store.Redis.Dump(w.Context(), key).Result()
		if err != redis.Nil { // it has ended
			w.must(err)
			saved[key] = text
		}
	}
	return saved
}

// load gives the store what it had of an index.
func (w *failoverWorld) load(index string, saved map[string]string) {
	w.Helper()
	for _, key := range w.keys(index) {
		w.must(w.store.Redis.Del(w.Context(), key).Err())
	}
	for key, text := range saved {
		w.must(w.store.Redis.Restore(w.Context(), key, 0, text).Err())
	}
}

// wantLists compares the lists of each user, and of the world, with the records.
func (w *failoverWorld) wantLists() {
	w.Helper()
	want, got := map[string][]string{}, map[string][]string{}
	add := func(m map[string][]string, status scene.Status, of, id string) {
		list := fmt.Sprint(of, " ", status)
		m[list] = append(m[list], id)
	}
	for _, id := range w.avatars {
		a, err := w.at(0).GetAvatar(w.Context(), id)
		w.must(err)
		add(want, a.Status, a.User, id)
	}
	for _, id := range w.scenes {
		s, err := w.at(0).GetScene(w.Context(), id)
		w.must(err)
		add(want, s.Status, s.World, id)
	}
	for _, user := range []string{"user0", "user1", "user2"} {
		for _, status := range []scene.Status{scene.Open, scene.Deleted} {
			page, err := w.at(1).ListAvatars(w.Context(), user, status, "", 1000)
			w.must(err)
			for _, a := range page.Avatars {
				add(got, status, user, a.ID)
			}
		}
	}
	for _, status := range []scene.Status{scene.Open, scene.Closed, scene.Deleted} {
		page, err := w.at(1).ListScenes(w.Context(), "earth", status, "", 1000)
		w.must(err)
		for _, s := range page.Scenes {
			add(got, status, "earth", s.ID)
		}
	}
	for list := range want {
		slices.Sort(want[list])
		slices.Sort(got[list])
		if !slices.Equal(got[list], want[list]) {
			w.Errorf("%s lists %v, want %v", list, got[list], want[list])
		}
	}
}
