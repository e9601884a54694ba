package scene_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"switchboard/broker/namespace"
	"switchboard/client"
	clientscene "switchboard/client/scene"
	"switchboard/internal/await"
	"switchboard/internal/wire"
	"switchboard/kit/scene"
)

// TestAccountHasManyAvatars checks the avatars of an account: several, each with an id of its own.
// Their list agrees with the records, and a deletion only marks them.
func TestAccountHasManyAvatars(t *testing.T) {
	eachWorld(t, func(o *scene.Options) { o.PerUser = 3 }, func(w *world) {
		amy, bob := w.play(0, "amy", "phone"), w.play(1, "bob", "phone")
		ctx := w.Context()
		var ids []string
		for i := range 3 {
			a, err := amy.CreateAvatar(ctx, clientscene.NewAvatar{Name: fmt.Sprint("Amy ", i), Figure: "elf", Data: map[string]int{"level": i}})
			w.must(err)
			if a.User != "amy" || a.Status != "open" || a.Scene != "" || a.Version == 0 || string(a.Data) != fmt.Sprintf(`{"level":%d}`, i) {
				t.Errorf("created %+v", a)
			}
			ids = append(ids, a.ID)
		}
		_, err := amy.CreateAvatar(ctx, clientscene.NewAvatar{Name: "Amy 3"})
		w.wantCode(err, wire.Full)
		names := func(p *player) (list string) {
			avatars, _, err := p.Avatars(ctx, clientscene.Page{})
			w.must(err)
			for _, a := range avatars {
				list += a.Name + ","
			}
			return list
		}
		if got := names(amy) + "|" + names(bob); strings.Count(got, "Amy") != 3 || !strings.HasSuffix(got, "|") {
			t.Errorf("the lists are %s", got)
		}

		name, wrong := "Zoe", int64(1)
		_, err = bob.PatchAvatar(ctx, ids[0], clientscene.AvatarPatch{Name: &name})
		w.wantCode(err, wire.Forbidden)
		_, err = bob.DeleteAvatar(ctx, ids[0])
		w.wantCode(err, wire.Forbidden)
		_, err = amy.PatchAvatar(ctx, ids[0], clientscene.AvatarPatch{Name: &name, Version: &wrong})
		w.wantCode(err, wire.Conflict)
		_, err = amy.PatchAvatar(ctx, ids[0], clientscene.AvatarPatch{Name: &name})
		w.must(err)
		first, err := amy.DeleteAvatar(ctx, ids[1])
		w.must(err)
		again, err := amy.DeleteAvatar(ctx, ids[1])
		if w.must(err); again.Version != first.Version || again.Status != first.Status {
			t.Errorf("the answer to the deletion is %+v, and repeated %+v", first, again)
		}
		_, err = bob.DeleteAvatar(ctx, ids[1])
		w.wantCode(err, wire.NotFound)
		if got := names(amy); !strings.Contains(got, "Zoe,") || strings.Contains(got, "Amy 1") || strings.Count(got, ",") != 2 {
			t.Errorf("the list is %s", got)
		}
		_, err = amy.PatchAvatar(ctx, ids[1], clientscene.AvatarPatch{Name: &name})
		w.wantCode(err, wire.NotFound)
		deleted, err := w.at(1).ListAvatars(ctx, "amy", scene.Deleted, "", 0)
		w.must(err)
		if len(deleted.Avatars) != 1 || deleted.Avatars[0].ID != ids[1] || string(deleted.Avatars[0].Data) != `{"level":1}` {
			t.Errorf("the deleted avatars are %+v", deleted.Avatars)
		}
		open := scene.Open
		_, err = w.at(0).PatchAvatar(ctx, ids[1], nil, scene.AvatarPatch{Status: &open})
		w.must(err)
		if got := names(amy); strings.Count(got, ",") != 3 {
			t.Errorf("after it was restored, the list is %s", got)
		}
	})
}

// TestOfflineStaysListed checks the scenario of the seed: the players of a scene are listed online
// or offline, and only a transfer removes one. A player is back after it enters again.
func TestOfflineStaysListed(t *testing.T) {
	eachWorld(t, nil, func(w *world) {
		w.newScene("town", "wood")
		w.newAvatar("a1", "amy")
		w.newAvatar("b1", "bob")
		amy, bob := w.play(0, "amy", "phone"), w.play(1, "bob", "phone")
		ctx := w.Context()
		bob.follow(w, "town")
		_, err := amy.Enter(ctx, "a1", "town")
		w.must(err)
		_, err = bob.Enter(ctx, "b1", "town")
		w.must(err)
		bob.expect(w, `set pc/a1 {"name":"N a1"}`)
		w.wantListed("town", "a1+ b1+")

		amy.leave()
		bob.expect(w, "away pc/a1")
		w.wantListed("town", "a1 b1+")

		amy = w.play(2, "amy", "phone") // the same device, at another broker
		a, err := amy.Enter(ctx, "a1", "town")
		w.must(err)
		bob.expect(w, "back pc/a1")
		if a.Scene != "town" {
			t.Errorf("the avatar is in %q", a.Scene)
		}
		w.wantListed("town", "a1+ b1+")
		amy.leave()
		bob.expect(w, "away pc/a1")
		tablet := w.play(0, "amy", "tablet")
		_, err = tablet.Enter(ctx, "a1", "town")
		w.must(err)
		bob.expect(w, "back pc/a1")
		w.must(tablet.Unsubscribe(ctx, "scene:town"))
		w.wantListed("town", "a1+ b1+")

		_, err = tablet.Enter(ctx, "a1", "wood")
		w.wantCode(err, wire.Conflict)
		_, err = tablet.Transfer(ctx, "a1", "wood")
		w.must(err)
		bob.expect(w, "del pc/a1")
		w.wantListed("town", "b1+")
		w.wantListed("wood", "a1+")
		w.wantPlaces("town", "b1")
		w.wantPlaces("wood", "a1")
		w.wantChecked()
	})
}

// TestUnsubscribe checks that the end of a subscription makes the avatar away, and that entering
// brings it back.
func TestUnsubscribe(t *testing.T) {
	eachWorld(t, nil, func(w *world) {
		w.newScene("town")
		w.newAvatar("a1", "amy")
		amy, bob := w.play(0, "amy", "phone"), w.play(1, "bob", "phone")
		bob.follow(w, "town")
		amy.follow(w, "town")
		_, err := amy.Enter(w.Context(), "a1", "town")
		w.must(err)
		w.must(amy.Unsubscribe(w.Context(), "scene:town"))
		bob.expect(w, "away pc/a1")
		w.wantListed("town", "a1")
		_, err = amy.Enter(w.Context(), "a1", "town")
		w.must(err)
		bob.expect(w, "back pc/a1")
		w.wantListed("town", "a1+")
	})
}

// TestPlayersControlOnlyTheirAvatars checks positions and moves: only the avatar's user writes
// them, and they end when the avatar leaves.
func TestPlayersControlOnlyTheirAvatars(t *testing.T) {
	eachWorld(t, nil, func(w *world) {
		w.newScene("town", "wood")
		w.newAvatar("a1", "amy")
		w.newAvatar("a2", "amy")
		w.newAvatar("b1", "bob")
		amy, bob := w.play(0, "amy", "phone"), w.play(1, "bob", "phone")
		ctx := w.Context()
		position := clientscene.OwnField("a1", "position")
		for _, id := range []string{"a1", "a2"} {
			_, err := amy.Enter(ctx, id, "town")
			w.must(err)
		}
		_, err := bob.Enter(ctx, "a1", "town")
		w.wantCode(err, wire.Forbidden)
		_, err = bob.Transfer(ctx, "a1", "wood")
		w.wantCode(err, wire.Forbidden)
		_, err = bob.Update(ctx, "scene:town", client.Set(position, 1))
		w.wantCode(err, wire.Forbidden)
		_, err = bob.Update(ctx, "scene:town", client.Set("pc/a1", 1))
		w.wantCode(err, wire.Forbidden)
		_, err = bob.Update(ctx, "avatar:b1", client.Set("x", 1))
		w.wantCode(err, wire.Forbidden)
		_, err = bob.Subscribe(ctx, "avatar:a1", client.SubscribeOptions{})
		w.wantCode(err, wire.Forbidden)

		bob.follow(w, "town")
		_, err = amy.Update(ctx, "scene:town", client.Set(position, []int{3, 4}), client.Set(clientscene.OwnField("a1", "status"), "asleep"))
		w.must(err)
		bob.expect(w, "set a/a1/position [3,4]")
		v, err := bob.Get(ctx, "town")
		w.must(err)
		if v.Count != 2 || v.Online != 2 || string(v.Avatars[0].Fields["status"]) != `"asleep"` {
			t.Errorf("the scene is %+v", v)
		}
		_, err = amy.Transfer(ctx, "a1", "wood")
		w.must(err)
		bob.expect(w, "del a/a1/position")
		_, err = amy.Update(ctx, "scene:town", client.Set(position, 1))
		w.wantCode(err, wire.NotFound)
		w.wantListed("town", "a2+")
	})
}

// TestClosedScene checks that a closed scene refuses entry. Avatars in it stay and may return.
func TestClosedScene(t *testing.T) {
	eachWorld(t, func(o *scene.Options) { o.Capacity = 2 }, func(w *world) {
		w.newScene("town", "wood")
		for _, id := range []string{"a1", "a2", "a3"} {
			w.newAvatar(id, "amy")
		}
		amy := w.play(0, "amy", "phone")
		ctx := w.Context()
		_, err := amy.Enter(ctx, "a1", "town")
		w.must(err)
		closed, open := scene.Closed, scene.Open
		_, err = w.at(1).PatchScene(ctx, "town", scene.ScenePatch{Status: &closed})
		w.must(err)
		_, err = amy.Enter(ctx, "a2", "town")
		w.wantCode(err, wire.Locked)
		_, err = w.at(1).Transfer(ctx, scene.Transfer{Avatar: "a2", Scene: "town"})
		w.wantCode(err, wire.Locked)
		_, err = amy.Enter(ctx, "a1", "town")
		w.must(err)
		_, err = w.at(1).PatchScene(ctx, "town", scene.ScenePatch{Status: &open})
		w.must(err)
		w.transfer("a2", "town")
		_, err = amy.Enter(ctx, "a3", "town")
		w.wantCode(err, wire.Full)
		_, err = amy.Enter(ctx, "a3", "nowhere")
		w.wantCode(err, wire.NotFound)
		w.wantListed("town", "a1+ a2")
		_, err = w.at(2).Leave(ctx, "a1")
		w.must(err)
		_, err = amy.Enter(ctx, "a2", "town")
		w.must(err)
		w.wantListed("town", "a2+")
	})
}

// TestDelete checks that deletions only mark: a deleted avatar leaves its scene, and a deleted
// scene has no avatars and no name.
func TestDelete(t *testing.T) {
	eachWorld(t, nil, func(w *world) {
		w.newScene("town", "wood")
		w.newAvatar("a1", "amy")
		w.newAvatar("a2", "amy")
		w.transfer("a1", "town")
		w.transfer("a2", "town")
		ctx := w.Context()
		a, err := w.at(0).DeleteAvatar(ctx, "a1", nil, nil)
		w.must(err)
		if a.Status != scene.Deleted || a.Scene != "" {
			t.Errorf("the avatar is %+v", a)
		}
		w.wantPlaces("town", "a2")
		_, err = w.at(1).DeleteScene(ctx, "town", nil)
		w.must(err)
		w.wantPlaces("town")
		if a, err = w.at(0).GetAvatar(ctx, "a2"); err != nil || a.Scene != "" {
			t.Errorf("after its scene was deleted: %+v, %v", a, err)
		}
		v, err := w.at(0).GetScene(ctx, "town")
		w.must(err)
		if v.Status != scene.Deleted || v.Name != "town" {
			t.Errorf("the scene is %+v", v)
		}
		_, err = w.at(0).Find(ctx, "earth", "town")
		w.wantCode(err, wire.NotFound)
		_, err = w.at(0).CreateScene(ctx, scene.NewScene{World: "earth", Name: "town"})
		w.must(err)
		open := scene.Open
		_, err = w.at(0).PatchScene(ctx, "town", scene.ScenePatch{Status: &open})
		w.wantCode(err, wire.Conflict) // its name is taken
		other := "old town"
		_, err = w.at(0).PatchScene(ctx, "town", scene.ScenePatch{Status: &open, Name: &other})
		w.must(err)
		w.transfer("a2", "town")
		w.wantListed("town", "a2")
		w.wantChecked()
	})
}

// TestReadByBackend: with BackendOnly, no client may follow or get a scene; by default users may.
func TestReadByBackend(t *testing.T) {
	for allowed, read := range map[bool]*namespace.Access{true: nil, false: new(namespace.BackendOnly)} {
		eachWorld(t, func(o *scene.Options) { o.Read = read }, func(w *world) {
			w.newScene("town")
			amy := w.play(0, "amy", "phone")
			_, err := amy.Subscribe(w.Context(), clientscene.Channel("town"), client.SubscribeOptions{})
			if (err == nil) != allowed {
				w.Errorf("the subscription, allowed: %t: %v", allowed, err)
			}
			_, err = amy.Get(w.Context(), "town")
			if refused, _ := errors.AsType[*client.Error](err); (err == nil) != allowed || !allowed && refused.Code != client.Forbidden {
				w.Errorf("scene.get, allowed: %t: %v", allowed, err)
			}
		})
	}
}

// TestCalls checks the HTTP calls.
func TestCalls(t *testing.T) {
	eachWorld(t, nil, func(w *world) {
		i := w.brokers[0]
		call := func(want int, method, path, body string, into any, header ...string) {
			t.Helper()
			if status := i.Call(w.T, method, path, body, into, header...); status != want {
				w.Errorf("%s %s %s: %d, want %d", method, path, body, status, want)
			}
		}
		var town, wood scene.Scene
		call(200, "POST", "/v1/scenes", `{"world":"earth","name":"主城","time":"noon","data":{"map":7}}`, &town)
		call(409, "POST", "/v1/scenes", `{"world":"earth","name":"主城"}`, nil)
		call(200, "POST", "/v1/scenes", `{"world":"mars","name":"主城"}`, nil)
		call(200, "POST", "/v1/scenes", `{"world":"earth","name":"wood","status":"closed"}`, &wood)
		call(400, "POST", "/v1/scenes", `{"world":"earth","name":""}`, nil)
		call(400, "POST", "/v1/scenes", `{"world":"e/h","name":"x"}`, nil)
		var a scene.Avatar
		call(200, "POST", "/v1/avatars", `{"user":"amy","name":"Amy","figure":"elf"}`, &a)
		call(409, "POST", "/v1/avatars", fmt.Sprintf(`{"id":%q,"user":"amy","name":"Amy"}`, a.ID), nil)
		call(200, "PUT", "/v1/avatars/"+a.ID+"/scene", fmt.Sprintf(`{"scene":%q}`, town.ID), &a)
		call(423, "PUT", "/v1/avatars/"+a.ID+"/scene", fmt.Sprintf(`{"scene":%q}`, wood.ID), nil)
		call(409, "PUT", "/v1/avatars/"+a.ID+"/scene", fmt.Sprintf(`{"scene":%q,"from":"x"}`, wood.ID), nil)
		var v scene.SceneView
		call(200, "GET", "/v1/scenes?world=earth&name=%E4%B8%BB%E5%9F%8E", "", &v)
		if v.ID != town.ID || v.Count != 1 || v.Online != 0 || v.Avatars[0].Name != "Amy" || v.Time != "noon" || string(v.Data) != `{"map":7}` {
			w.Errorf("the scene is %+v", v)
		}
		var list scene.ScenePage
		call(200, "GET", "/v1/scenes?world=earth", "", &list)
		if len(list.Scenes) != 2 || list.Scenes[0].Count+list.Scenes[1].Count != 1 {
			w.Errorf("the list is %+v", list.Scenes)
		}
		call(409, "PATCH", "/v1/scenes/"+town.ID, `{"version":1,"time":"night"}`, nil)
		call(200, "PATCH", "/v1/scenes/"+town.ID, fmt.Sprintf(`{"version":%d,"time":"night"}`, town.Version), &town)
		if town.Time != "night" || town.Count != 1 {
			w.Errorf("the scene is %+v", town)
		}
		call(409, "PATCH", "/v1/scenes/"+town.ID, `{"time":"noon"}`, nil, "If-Match", "1")
		call(409, "PATCH", "/v1/scenes/"+town.ID, `{"version":1,"time":"noon"}`, nil, "If-Match", "*")
		call(200, "PATCH", "/v1/avatars/"+a.ID, `{"name":"Zoe"}`, &a, "If-Match", "*")
		call(400, "DELETE", "/v1/avatars/"+a.ID, "", nil, "If-None-Match", "*")
		call(200, "GET", "/v1/scenes/"+town.ID, "", &v)
		if v.Avatars[0].Name != "Zoe" {
			w.Errorf("after the change of the name: %+v", v.Avatars)
		}
		var avatars scene.AvatarPage
		call(200, "GET", "/v1/avatars?user=amy&limit=1", "", &avatars)
		if len(avatars.Avatars) != 1 || avatars.Avatars[0].Scene != town.ID {
			w.Errorf("the avatars are %+v", avatars)
		}
		call(200, "DELETE", "/v1/avatars/"+a.ID+"/scene", "", &a)
		call(200, "DELETE", "/v1/avatars/"+a.ID, "", &a)
		call(200, "GET", "/v1/avatars/"+a.ID, "", &a)
		call(404, "GET", "/v1/avatars/none", "", nil)
		call(200, "DELETE", "/v1/scenes/"+town.ID, "", nil)
		w.wantChecked()
	})
}

// TestRound checks that a running broker finishes a transfer that stopped.
func TestRound(t *testing.T) {
	fast := func(o *scene.Options) { o.Every, o.Delay = 20e6, 400e6 }
	eachWorld(t, fast, func(w *world) {
		w.newScene("town", "wood")
		w.newAvatar("a1", "amy")
		w.transfer("a1", "town")
		w.stopAfter(0, "move")
		_, err := w.at(0).Transfer(w.Context(), scene.Transfer{Avatar: "a1", Scene: "wood"})
		w.wantStopped(err)
		await.True(t, "the transfer is finished", func() bool { return len(w.places("town")) == 0 })
		w.wantListed("wood", "a1")
	})
}
