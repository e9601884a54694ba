package scene_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"switchboard/client"
	clientscene "switchboard/client/scene"
	"switchboard/internal/await"
	"switchboard/kit/scene"
)

// TestAvatarsAtOnce creates more avatars than a user may have, at once and on several brokers. As
// many are made as are allowed. A deleted one makes place for the next. One that the backend has
// made does not count.
func TestAvatarsAtOnce(t *testing.T) {
	const most = 32
	eachWorld(t, func(o *scene.Options) { o.PerUser = most }, func(w *world) {
		players := []*player{w.play(0, "amy", "phone"), w.play(1, "amy", "tablet"), w.play(2, "amy", "laptop")}
		create := func(p *player) error {
			_, err := p.CreateAvatar(w.Context(), clientscene.NewAvatar{Name: "Zoe"})
			return err
		}
		listed := func() int {
			page, err := w.at(0).ListAvatars(w.Context(), "amy", "", "", 1000)
			w.must(err)
			return len(page.Avatars)
		}
		w.newAvatar("gift", "amy") // by the backend, which is not charged
		var made atomic.Int64
		var group sync.WaitGroup
		for i := range most + 18 {
			group.Go(func() {
				err := create(players[i%len(players)])
				if e, ok := errors.AsType[*client.Error](err); err == nil {
					made.Add(1)
				} else if !ok || e.Code != client.Full {
					t.Error(err)
				}
			})
		}
		group.Wait()
		if n := made.Load(); n != most || listed() != most+1 {
			t.Errorf("%d avatars were made, and %d are listed, want %d", n, listed(), most+1)
		}
		page, err := w.at(0).ListAvatars(w.Context(), "amy", "", "", 1000)
		w.must(err)
		made.Store(0)
		for i, a := range page.Avatars[:2] { // one of them may be the gift
			_, err := w.at(i).DeleteAvatar(w.Context(), a.ID, nil, nil)
			w.must(err)
		}
		for range 3 {
			if create(players[1]) == nil {
				made.Add(1)
			}
		}
		want := int64(2)
		if page.Avatars[0].ID == "gift" || page.Avatars[1].ID == "gift" {
			want = 1
		}
		if made.Load() != want {
			t.Errorf("after two ends %d more were made, want %d", made.Load(), want)
		}
		w.wantChecked()
	})
}

// TestDeletedAvatarsEnd checks that few deleted avatars of a user are kept, and that they end.
func TestDeletedAvatarsEnd(t *testing.T) {
	const most = 3
	eachWorld(t, func(o *scene.Options) { o.PerUser, o.DeletedLife = most, time.Second }, func(w *world) {
		amy := w.play(0, "amy", "phone")
		deleted := func() (ids []string) {
			page, err := w.at(0).ListAvatars(w.Context(), "amy", scene.Deleted, "", 100)
			w.must(err)
			for _, a := range page.Avatars {
				ids = append(ids, a.ID)
			}
			return ids
		}
		var made []string
		for range 2 * most {
			a, err := amy.CreateAvatar(w.Context(), clientscene.NewAvatar{Name: "Zoe"})
			w.must(err)
			made = append(made, a.ID)
			_, err = w.at(1).DeleteAvatar(w.Context(), a.ID, nil, nil)
			w.must(err)
		}
		if got := deleted(); len(got) != most {
			t.Fatalf("the deleted avatars are %v, want %d of %v", got, most, made)
		}
		open := scene.Open
		kept := deleted()[0]
		_, err := w.at(0).PatchAvatar(w.Context(), kept, nil, scene.AvatarPatch{Status: &open})
		w.must(err)
		await.True(w, "the deleted avatars end", func() bool {
			w.must(w.opts.Avatars.Schedule(w.Context(), time.Millisecond, made...))
			_, err := w.at(1).Round(w.Context())
			w.must(err)
			return len(deleted()) == 0
		})
		for _, id := range made {
			if _, err := w.at(0).GetAvatar(w.Context(), id); (err == nil) != (id == kept) {
				t.Errorf("avatar %s: %v", id, err)
			}
		}
		w.wantChecked()
	})
}
