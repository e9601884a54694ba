package scene_test

import (
	"errors"
	"sync"
	"sync/atomic"
	"testing"

	"switchboard/client"
	clientscene "switchboard/client/scene"
	"switchboard/kit/index"
	"switchboard/kit/scene"
)

// TestAvatarsAtOnce creates more avatars than a user may have, at once and on several brokers. As
// many are made as are allowed. The place of one whose broker stopped is free after a round.
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
		lost := index.Card{ID: "lost", Version: 1, Lists: map[string]int64{"user:amy": 1}} // its broker has stopped
		stored, err := w.opts.Avatars.PutWithin(w.Context(), lost, "user:amy", most)
		if w.must(err); !stored {
			t.Error("amy has no place")
		}
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
		if n := made.Load(); n != most-1 || listed() != most-1 {
			t.Errorf("%d avatars were made, and %d are listed, want %d", n, listed(), most-1)
		}
		w.rounds([]string{"lost"}, nil)
		if err := create(players[1]); err != nil || listed() != most {
			t.Errorf("after the round %d avatars are listed, %v", listed(), err)
		}
		if err := create(players[2]); err == nil {
			t.Error("one more avatar was made")
		}
		w.wantChecked()
	})
}
