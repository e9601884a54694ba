package scene_test

import (
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/client"
	clientscene "switchboard/client/scene"
	"switchboard/kit/index"
	"switchboard/kit/kittest"
	"switchboard/kit/scene"
)

// TestCosts counts the scripts of each operation. The page of the documentation has the same rows.
func TestCosts(t *testing.T) {
	cost := &kittest.Cost{}
	opts := scene.Options{Every: time.Hour, Avatars: cost.Index(index.NewMemory()), Scenes: cost.Index(index.NewMemory())}
	var s *scene.Scenes
	b := kittest.NewMemory().Start(t, func(o *broker.Options) {
		o.Store.Queue = cost.Queue(o.Store.Queue)
		o.Extensions = append(o.Extensions, func(h *extension.Host) (_ extension.Extension, err error) {
			if s, err = scene.New(h, opts); err != nil {
				return extension.Extension{}, err
			}
			return s.Extension(), nil
		})
	})
	ctx := t.Context()
	row := cost.Documented(t, "../../docs/scenes.md")
	amy := b.Connect(t, "amy", nil)
	call := func(method string, data map[string]any) {
		t.Helper()
		if err := amy.Call(ctx, method, data, nil); err != nil {
			t.Fatal(err)
		}
	}
	must := func(_ any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(s.CreateScene(ctx, scene.NewScene{ID: "hall", World: "earth", Name: "hall"}))
	row("create a scene")
	must(s.CreateScene(ctx, scene.NewScene{ID: "yard", World: "earth", Name: "yard"}))
	call("scene.list", map[string]any{"world": "earth"}) // the client is connected
	_ = cost.String()
	must(s.CreateAvatar(ctx, scene.NewAvatar{ID: "a", User: "amy", Name: "Amy"}))
	row("create an avatar")
	call("scene.enter", map[string]any{"avatar": "a", "scene": "hall"})
	row("enter from no scene")
	call("scene.enter", map[string]any{"avatar": "a", "scene": "hall"})
	row("enter again")
	if _, err := amy.Update(ctx, "scene:hall", client.Set(clientscene.OwnField("a", "pos"), 1)); err != nil {
		t.Fatal(err)
	}
	row("position")
	call("scene.get", map[string]any{"scene": "hall"})
	row("`scene.get` with one avatar")
	must(s.ListScenes(ctx, "earth", "", "", 0))
	row("list two scenes")
	must(s.ListAvatars(ctx, "amy", "", "", 0))
	row("list one avatar")
	must(s.GetAvatar(ctx, "a"))
	row("get an avatar")
	call("scene.transfer", map[string]any{"avatar": "a", "scene": "yard"})
	row("transfer")
	must(s.Leave(ctx, "a"))
	row("leave")
	status := scene.Closed
	must(s.PatchScene(ctx, "hall", scene.ScenePatch{Status: &status}))
	row("change a scene")
	must(s.DeleteAvatar(ctx, "a", nil, nil))
	row("delete an avatar in no scene")
	must(s.DeleteScene(ctx, "hall", nil))
	row("delete an empty scene")
}
