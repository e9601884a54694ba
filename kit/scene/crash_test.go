package scene_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"switchboard/internal/await"
	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit/scene"
)

var errStopped = errors.New("the process has stopped")

// stopAfter makes operations of a broker stop after a step, or never if step is "".
func (w *world) stopAfter(broker int, step string) {
	w.at(broker).SetFault(func(at string) error {
		if at == step {
			return errStopped
		}
		return nil
	})
}

func (w *world) wantStopped(err error) {
	w.Helper()
	if !errors.Is(err, errStopped) {
		w.Fatalf("got %v, want that the operation stops", err)
	}
}

// TestCrashOfATransfer stops a transfer after each of its steps. The reads show one place at once.
// Two rounds at the same time leave one place, which is confirmed.
func TestCrashOfATransfer(t *testing.T) {
	for _, c := range []struct {
		step       string
		town, wood []string // places after the crash
		in         string   // the scene of the record
	}{
		{"take", []string{"a1"}, []string{"a1~"}, "town"},
		{"move", []string{"a1"}, []string{"a1~"}, "wood"},
		{"confirm", []string{"a1"}, []string{"a1"}, "wood"},
		{"leave", nil, []string{"a1"}, "wood"},
	} {
		t.Run(c.step, func(t *testing.T) {
			short := func(o *scene.Options) {
				if c.step == "take" { // only the end of the lease ends this one
					o.Lease = 100 * time.Millisecond
				}
			}
			eachWorld(t, short, func(w *world) {
				w.newScene("town", "wood")
				w.newAvatar("a1", "amy")
				w.transfer("a1", "town")
				w.stopAfter(0, c.step)
				_, err := w.at(0).Transfer(w.Context(), scene.Transfer{Avatar: "a1", Scene: "wood"})
				w.wantStopped(err)
				w.stopAfter(0, "")
				w.wantPlaces("town", c.town...)
				if c.step != "take" {
					w.wantPlaces("wood", c.wood...)
				}
				want := map[string]string{c.in: "a1"}
				w.wantListed("town", want["town"])
				w.wantListed("wood", want["wood"])

				w.rounds([]string{"a1"}, nil)
				await.True(w, "one place is left", func() bool { return len(w.places("town"))+len(w.places("wood")) == 1 })
				w.wantPlaces(c.in, "a1")
				w.wantListed(c.in, "a1")
				w.wantChecked()
			})
		})
	}
}

// TestLostPlace checks that the round makes a place again whose lease has ended, or which a late
// deletion has taken: the record decides. The scene may be closed meanwhile.
func TestLostPlace(t *testing.T) {
	eachWorld(t, nil, func(w *world) {
		w.newScene("town", "wood")
		w.newAvatar("a1", "amy")
		w.transfer("a1", "town")
		w.stopAfter(0, "move")
		_, err := w.at(0).Transfer(w.Context(), scene.Transfer{Avatar: "a1", Scene: "wood"})
		w.wantStopped(err)
		w.stopAfter(0, "")
		w.change("scene:wood", state.Op{Field: "pc/a1", Kind: state.Delete})
		closed := scene.Closed
		_, err = w.at(0).PatchScene(w.Context(), "wood", scene.ScenePatch{Status: &closed})
		w.must(err)
		w.rounds([]string{"a1"}, nil)
		w.wantPlaces("town")
		w.wantPlaces("wood", "a1")

		w.transfer("a1", "town")
		w.stopAfter(0, "move")
		open := scene.Open
		_, err = w.at(1).PatchScene(w.Context(), "wood", scene.ScenePatch{Status: &open})
		w.must(err)
		_, err = w.at(0).Transfer(w.Context(), scene.Transfer{Avatar: "a1", Scene: "wood"})
		w.wantStopped(err)
		w.stopAfter(0, "")
		_, err = w.at(1).DeleteScene(w.Context(), "wood", nil)
		w.must(err)
		w.rounds([]string{"a1"}, []string{"wood"})
		w.wantPlaces("town")
		w.wantPlaces("wood")
		if a, err := w.at(0).GetAvatar(w.Context(), "a1"); err != nil || a.Scene != "" {
			t.Errorf("its scene is deleted, and it is %+v, %v", a, err)
		}
		w.wantChecked()
	})
}

// TestMovedOn moves an avatar on between two steps of a transfer. The first transfer does not
// confirm its place.
func TestMovedOn(t *testing.T) {
	eachWorld(t, nil, func(w *world) {
		w.newScene("town", "wood", "hill")
		w.newAvatar("a1", "amy")
		w.transfer("a1", "town")
		slow := w.another(func(step string) {
			if step == "move" {
				w.transfer("a1", "hill")
			}
		})
		_, err := slow.Transfer(w.Context(), scene.Transfer{Avatar: "a1", Scene: "wood"})
		w.wantCode(err, wire.Conflict)
		w.wantPlaces("town")
		w.wantPlaces("wood")
		w.wantPlaces("hill", "a1")
		w.wantChecked()
	})
}

// TestLateDeletion delays the deletion of a place that an avatar has left, until it is back: the
// deletion has read the place of the first visit, or the one that the transfer back has taken.
func TestLateDeletion(t *testing.T) {
	for _, delayed := range []string{"before the transfer back", "in the transfer back"} {
		t.Run(delayed, func(t *testing.T) {
			eachWorld(t, nil, func(w *world) { testLateDeletion(w, delayed == "in the transfer back") })
		})
	}
}

func testLateDeletion(w *world, taken bool) {
	w.newScene("town", "wood")
	w.newAvatar("a1", "amy")
	w.transfer("a1", "town")
	w.stopAfter(0, "confirm")
	_, err := w.at(0).Transfer(w.Context(), scene.Transfer{Avatar: "a1", Scene: "wood"})
	w.wantStopped(err)
	w.stopAfter(0, "")

	leaving, goOn, done := make(chan struct{}), make(chan struct{}), make(chan error)
	slow := w.another(func(step string) {
		if step == "leaving" {
			close(leaving)
			<-goOn
		}
	})
	leave := func() {
		go func() { done <- slow.Settle(w.Context(), "a1") }()
		<-leaving
	}
	back := w.another(func(step string) {
		if step == "take" && taken {
			leave()
		}
	})
	if !taken {
		leave()
	}
	_, err = back.Transfer(w.Context(), scene.Transfer{Avatar: "a1", Scene: "town"})
	w.must(err)
	place := func() int64 {
		fields, err := w.host().ReadState(w.Context(), "scene:town", "pc/a1")
		w.must(err)
		return fields["pc/a1"].ID
	}
	confirmed := place()
	close(goOn)
	w.must(<-done)
	if place() != confirmed {
		w.Error("the late deletion has deleted the place")
	}
	w.wantPlaces("town", "a1")
	w.wantPlaces("wood")
	w.wantChecked()
}

// TestTransfersAtOnce moves avatars by several brokers at once, of which some stop at random. At
// the end each avatar has exactly one place, where its record says.
func TestTransfersAtOnce(t *testing.T) {
	eachWorld(t, nil, func(w *world) {
		scenes, avatars := []string{"s0", "s1", "s2"}, []string{"a1", "a2"}
		w.newScene(scenes...)
		for _, id := range avatars {
			w.newAvatar(id, "amy")
			w.transfer(id, "s0")
		}
		for i := range w.scenes {
			w.at(i).SetFault(func(string) error {
				if rand.IntN(20) == 0 {
					return errStopped
				}
				return nil
			})
		}
		var all sync.WaitGroup
		for worker := range 6 {
			all.Go(func() {
				for n := range 12 {
					var err error
					id := avatars[(worker+n)%len(avatars)]
					switch rand.IntN(8) {
					case 0:
						_, err = w.at(worker).Leave(w.Context(), id)
					case 1:
						err = w.at(worker).Settle(w.Context(), id)
					default:
						_, err = w.at(worker).Transfer(w.Context(), scene.Transfer{Avatar: id, Scene: scenes[rand.IntN(len(scenes))]})
					}
					e, known := errors.AsType[*wire.Error](err)
					if err != nil && !errors.Is(err, errStopped) && (!known || e.Code != wire.Conflict && e.Code != wire.Unavailable) {
						t.Errorf("a transfer: %v", err)
					}
				}
			})
		}
		all.Wait()
		for i := range w.scenes {
			w.stopAfter(i, "")
		}
		w.transfer("a2", "s1")
		w.rounds(avatars, nil)
		for _, id := range avatars {
			a, err := w.at(0).GetAvatar(w.Context(), id)
			w.must(err)
			found := ""
			for _, s := range scenes {
				for _, p := range w.places(s) {
					if p == id { // without a lease
						found += s
					}
				}
			}
			if found != a.Scene {
				t.Errorf("%s has places in %q, its record says %q", id, found, a.Scene)
			}
		}
	})
}

// TestCrashOfAName stops the creation, the renaming and the deletion of a scene after each step.
// The round leaves each scene with its name, and each name with its scene.
func TestCrashOfAName(t *testing.T) {
	operations := map[string]func(w *world) error{
		"create": func(w *world) error {
			_, err := w.at(0).CreateScene(w.Context(), scene.NewScene{ID: "new", World: "earth", Name: "new"})
			return err
		},
		"rename": func(w *world) error {
			name := "new"
			_, err := w.at(0).PatchScene(w.Context(), "town", scene.ScenePatch{Name: &name})
			return err
		},
		"delete": func(w *world) error {
			_, err := w.at(0).DeleteScene(w.Context(), "town", nil)
			return err
		},
	}
	for name, operate := range operations {
		for _, step := range []string{"claim", "scene", "name"} {
			if name == "delete" && step != "scene" {
				continue
			}
			t.Run(name+" "+step, func(t *testing.T) {
				short := func(o *scene.Options) {
					if step == "claim" {
						o.Lease = 50 * time.Millisecond
					}
				}
				eachWorld(t, short, func(w *world) {
					w.newScene("town")
					w.stopAfter(0, step)
					w.wantStopped(operate(w))
					w.stopAfter(0, "")
					w.rounds(nil, []string{"town", "new"})
					w.wantChecked()
					want := map[string]string{"town": "town", "new": map[string]string{"create": "new", "rename": "town"}[name]}
					if step == "claim" {
						want["new"] = ""
					}
					if name == "rename" && step != "claim" || name == "delete" {
						want["town"] = ""
					}
					for name, id := range want {
						await.True(w, fmt.Sprintf("%s is %q", name, id), func() bool {
							v, err := w.at(0).Find(w.Context(), "earth", name)
							return err != nil && id == "" || err == nil && v.ID == id
						})
					}
				})
			})
		}
	}
}

// TestLostName checks that a scene whose name another one has got is not created, or keeps its old
// name.
func TestLostName(t *testing.T) {
	eachWorld(t, nil, func(w *world) {
		w.newScene("town")
		name := "new"
		for _, operate := range []func() error{
			func() error {
				_, err := w.at(0).CreateScene(w.Context(), scene.NewScene{ID: "late", World: "earth", Name: name})
				return err
			},
			func() error {
				_, err := w.at(0).PatchScene(w.Context(), "town", scene.ScenePatch{Name: &name})
				return err
			},
		} {
			w.at(0).SetFault(func(step string) error {
				if step == "claim" { // the lease ends, and another scene gets the name
					w.change("world:earth", state.Op{Field: "$$scene/new", Kind: state.Set, Value: []byte(`"other"`)})
				}
				return nil
			})
			w.wantCode(operate(), wire.Conflict)
			w.change("world:earth", state.Op{Field: "$$scene/new", Kind: state.Delete})
		}
		w.stopAfter(0, "")
		v, err := w.at(0).GetScene(w.Context(), "town")
		w.must(err)
		late, err := w.at(0).GetScene(w.Context(), "late")
		w.must(err)
		if v.Name != "town" || late.Status != scene.Deleted {
			t.Errorf("the scenes are %+v and %+v", v, late)
		}
		w.rounds(nil, []string{"town", "late"}) // they write the cards
		w.wantChecked()
	})
}

// TestOneNameAtOnce creates scenes with one name at several brokers at once: one gets it.
func TestOneNameAtOnce(t *testing.T) {
	eachWorld(t, nil, func(w *world) {
		errs := make(chan error)
		for i := range 8 {
			go func() {
				_, err := w.at(i).CreateScene(w.Context(), scene.NewScene{World: "earth", Name: "town"})
				errs <- err
			}()
		}
		created := 0
		for range 8 {
			if err := <-errs; err == nil {
				created++
			} else {
				w.wantCode(err, wire.Conflict)
			}
		}
		if created != 1 {
			t.Errorf("%d scenes were created", created)
		}
		w.wantChecked()
	})
}
