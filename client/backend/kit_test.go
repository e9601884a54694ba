package backend_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"switchboard/broker"
	"switchboard/broker/extension"
	"switchboard/client"
	"switchboard/client/account"
	"switchboard/client/backend"
	"switchboard/client/room"
	"switchboard/client/scene"
	kitaccount "switchboard/kit/account"
	kitboard "switchboard/kit/board"
	kithold "switchboard/kit/hold"
	"switchboard/kit/index"
	kitroom "switchboard/kit/room"
	kitscene "switchboard/kit/scene"
)

// system is a system of the kit.
type system interface{ Extension() extension.Extension }

// extension switches a system on.
func makeExtension[S system, O any](create func(*extension.Host, O) (S, error), o O) func(*broker.Options) {
	return func(options *broker.Options) {
		options.Extensions = append(options.Extensions, func(host *extension.Host) (extension.Extension, error) {
			s, err := create(host, o)
			if err != nil {
				return extension.Extension{}, err
			}
			return s.Extension(), nil
		})
	}
}

// code fails the test unless err is a refusal with the code.
func code(t *testing.T, err error, want client.ErrorCode) {
	t.Helper()
	if refused, ok := errors.AsType[*backend.Error](err); !ok || refused.Code != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

// must fails the test if err is not nil.
func must[T any](v T, err error) func(*testing.T) T {
	return func(t *testing.T) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func TestRooms(t *testing.T) {
	sb, address := start(t, makeExtension(kitroom.New, kitroom.Options{Index: index.NewMemory()}))
	ctx, rooms := t.Context(), backend.Rooms{Client: sb}
	arena := backend.NewRoom{CreateOptions: room.CreateOptions{ID: "7", Mode: "default", Name: "Arena", Capacity: 3}, Owner: "amy"}
	made := must(rooms.Create(ctx, arena))(t)
	if made.ID != "7" || made.Channel != "room:7" || made.Room.Name != "Arena" || made.OwnerUser != "amy" || made.Version == 0 {
		t.Errorf("%+v", made)
	}
	_, err := rooms.Create(ctx, arena)
	code(t, err, client.Conflict)
	if numbers := must(rooms.Reserve(ctx, "7", []string{"amy", "bob"}, time.Minute))(t); numbers["bob"] != 2 {
		t.Errorf("%v", numbers)
	}
	connect(t, address, "carol", "tab", "")
	if j := must(rooms.Join(ctx, "7", backend.RoomJoin{User: "carol", Client: "tab"}))(t); j.N != 3 || j.Reserved {
		t.Errorf("%+v", j)
	}
	got := must(rooms.Get(ctx, "7"))(t)
	if len(got.Members) != 3 || got.Members[2].User != "carol" || got.Members[2].Reserved || !got.Members[0].Reserved {
		t.Errorf("%+v", got)
	}
	region := "eu"
	_, err = rooms.Patch(ctx, "7", backend.RoomPatch{Version: 5, Region: &region})
	code(t, err, client.Conflict)
	if p := must(rooms.Patch(ctx, "7", backend.RoomPatch{Version: got.Version, Region: &region}))(t); p.Room.Region != "eu" {
		t.Errorf("%+v", p)
	}
	quick := backend.RoomQuick{QuickOptions: room.QuickOptions{Mode: "default", Region: "us"}, User: "dan"}
	if j, err := rooms.Quick(ctx, quick); err != nil || j.N != 1 || !j.Reserved {
		t.Errorf("%+v, %v", j, err)
	}
	eventually(t, "the list has the room", func() (room.Page, error) {
		return rooms.List(ctx, backend.RoomQuery{ListOptions: room.ListOptions{Region: "eu", Desc: true}, Owner: "carol"})
	}, func(p room.Page) bool { return len(p.Rooms) == 1 && p.Rooms[0].Reserved == 2 })
	eventually(t, "bob has the room", func() (room.MinePage, error) { return rooms.Of(ctx, "bob", backend.PageQuery{}) },
		func(p room.MinePage) bool { return len(p.Rooms) == 1 && p.Rooms[0].N == 2 })
	if list := must(rooms.Query(ctx, []string{"7", "none"}))(t); len(list) != 1 || list[0].ID != "7" || len(list[0].Members) != 3 {
		t.Errorf("%+v", list)
	}
	eventually(t, "the room is counted", func() (int, error) { return rooms.Count(ctx, backend.RoomCount{Region: "eu"}) },
		func(n int) bool { return n == 1 })
	for _, err := range []error{
		rooms.Lock(ctx, "7", true), rooms.Lock(ctx, "7", false), rooms.Kick(ctx, "7", 1), rooms.Leave(ctx, "7", "bob"),
		rooms.Start(ctx, "7"), rooms.Finish(ctx, "7"),
	} {
		if err != nil {
			t.Error(err)
		}
	}
	code(t, rooms.Delete(ctx, "7", 5), client.Conflict)
	if err := rooms.Delete(ctx, "7", 0); err != nil {
		t.Error(err)
	}
	_, err = rooms.Get(ctx, "7")
	code(t, err, client.NotFound)
}

func TestHolds(t *testing.T) {
	sb, _ := start(t, makeExtension(kithold.New, kithold.Options{Index: index.NewMemory()}))
	ctx, holds := t.Context(), backend.Holds{Client: sb}
	r := must(holds.Put(ctx, "play", backend.ResourceSettings{Seats: []string{"A1..A4"}}, 0))(t)
	if r.Free != 4 || r.Version == 0 {
		t.Errorf("%+v", r)
	}
	_, err := holds.Put(ctx, "play", backend.ResourceSettings{Capacity: 4}, 5)
	code(t, err, client.Conflict)
	h := must(holds.Take(ctx, "play", backend.Places{ID: "o1", User: "bob", Seats: []string{"A1", "A2"}, HoldMS: 60_000}))(t)
	if h.State != "held" || h.Until == 0 {
		t.Errorf("%+v", h)
	}
	_, err = holds.Take(ctx, "play", backend.Places{User: "amy", Seats: []string{"A2"}})
	code(t, err, client.Conflict)
	if refused, _ := errors.AsType[*backend.Error](err); !strings.Contains(string(refused.Data), `"A2"`) {
		t.Errorf("%+v", refused)
	}
	must(holds.Renew(ctx, "play", "o1"))(t)
	if h := must(holds.Confirm(ctx, "play", "o1"))(t); h.State != "sold" {
		t.Errorf("%+v", h)
	}
	must(holds.Sell(ctx, "play", backend.Places{ID: "o2", Seats: []string{"A3"}}))(t)
	if r := must(holds.Resource(ctx, "play"))(t); r.Sold != 3 {
		t.Errorf("%+v", r)
	}
	if h := must(holds.Release(ctx, "play", "o1"))(t); h.State != "released" {
		t.Errorf("%+v", h)
	}
	if h := must(holds.Get(ctx, "play", "o1"))(t); h.Ended == 0 {
		t.Errorf("%+v", h)
	}
	if list := must(holds.Of(ctx, "play", "bob"))(t); len(list) != 1 || list[0].ID != "o1" {
		t.Errorf("%+v", list)
	}
	if list := must(holds.Query(ctx, []string{"none", "play"}))(t); len(list) != 2 || list[0] != nil || list[1].Name != "play" {
		t.Errorf("%+v", list)
	}
	eventually(t, "the resource is listed", func() (backend.ResourcePage, error) { return holds.Resources(ctx, backend.PageQuery{}) },
		func(p backend.ResourcePage) bool { return len(p.Resources) == 1 && p.Resources[0].Name == "play" })
	if err := holds.Delete(ctx, "play", 0); err != nil {
		t.Error(err)
	}
}

func TestBoards(t *testing.T) {
	sb, _ := start(t, makeExtension(kitboard.NewBoards, kitboard.Options{Store: kitboard.NewMemory()}))
	ctx, boards := t.Context(), backend.Boards{Client: sb}
	for _, s := range []backend.Score{{Player: "amy", Score: 50}, {Player: "bob", Score: 60}, {Player: "amy", Score: 20, Mode: "add", Operation: "g1"}} {
		must(boards.Submit(ctx, "arena", s))(t)
	}
	if v := must(boards.Top(ctx, "arena", backend.BoardQuery{Limit: 1}))(t); v.Count != 2 || len(v.Entries) != 1 || v.Entries[0].Score != 70 {
		t.Errorf("%+v", v)
	}
	if v := must(boards.Around(ctx, "arena", "bob", backend.BoardQuery{}))(t); len(v.Entries) != 2 {
		t.Errorf("%+v", v)
	}
	if s := must(boards.Rank(ctx, "arena", "bob", ""))(t); s.Rank != 2 {
		t.Errorf("%+v", s)
	}
	if r := must(boards.Remove(ctx, "arena", "bob", ""))(t); *r.Previous != 60 {
		t.Errorf("%+v", r)
	}
	_, err := boards.Rank(ctx, "arena", "bob", "")
	code(t, err, client.NotFound)
	list := eventually(t, "the board is listed", func() (backend.BoardPage, error) { return boards.List(ctx, backend.PageQuery{}) },
		func(p backend.BoardPage) bool { return len(p.Boards) == 1 })
	if c := list.Boards[0]; c.Board != "arena" || c.Order != "desc" || c.Count != 1 || c.First == nil || c.First.Score != 70 || list.Cursor != "" {
		t.Errorf("%+v", list)
	}
}

func TestAccounts(t *testing.T) {
	key := []byte(strings.Repeat("k", 32))
	sb, _ := start(t, makeExtension(kitaccount.New, kitaccount.Options{SigningKey: key, Index: index.NewMemory()}),
		makeExtension(kitaccount.NewSessions, kitaccount.SessionOptions{}))
	ctx, accounts := t.Context(), backend.Accounts{Client: sb}
	amy := must(accounts.Create(ctx, account.Registration{Name: "amy", Password: "correct horse"}))(t)
	_, err := accounts.Create(ctx, account.Registration{Name: "amy", Password: "correct horse"})
	code(t, err, client.Conflict)
	for _, change := range []struct {
		want string
		call func(context.Context, string) (account.Account, error)
	}{{"locked", accounts.Lock}, {"open", accounts.Unlock}} {
		if a := must(change.call(ctx, amy.ID))(t); a.State != change.want {
			t.Errorf("%+v", a)
		}
	}
	must(accounts.Unlock(ctx, amy.ID))(t)
	open := must(accounts.Get(ctx, amy.ID))(t)
	_, err = accounts.Rename(ctx, amy.ID, "eve", open.Version-1)
	code(t, err, client.Conflict)
	if a := must(accounts.Rename(ctx, amy.ID, "zoe", open.Version))(t); a.Name != "zoe" {
		t.Errorf("%+v", a)
	}
	must(accounts.SetPassword(ctx, amy.ID, "battery staple"))(t)
	if a := must(accounts.Delete(ctx, amy.ID))(t); a.State != "deleted" {
		t.Errorf("%+v", a)
	}
	must(accounts.Restore(ctx, amy.ID))(t)
	if a := must(accounts.Get(ctx, amy.ID))(t); a.State != "open" || a.Login == nil {
		t.Errorf("%+v", a)
	}
	eventually(t, "zoe is found", func() (string, error) { a, err := accounts.Named(ctx, "zoe"); return a.ID, err },
		func(id string) bool { return id == amy.ID })
	eventually(t, "the account is listed", func() (backend.AccountPage, error) { return accounts.List(ctx, "open", backend.PageQuery{}) },
		func(p backend.AccountPage) bool { return len(p.Accounts) == 1 && p.Total == 1 })
	events := must(accounts.History(ctx, amy.ID))(t)
	if !slices.ContainsFunc(events, func(e backend.AccountEvent) bool { return e.Type == "locked" && e.At > 0 }) {
		t.Errorf("%+v", events)
	}

	sessions := backend.Sessions{Client: sb}
	put := must(sessions.Put(ctx, "amy", map[string]int{"a": 1}, time.Hour, 0))(t)
	if string(put.Data) != `{"a":1}` || put.Until == 0 {
		t.Errorf("%+v", put)
	}
	_, err = sessions.Put(ctx, "amy", 2, 0, 5)
	code(t, err, client.Conflict)
	if got := must(sessions.Get(ctx, "amy"))(t); got.Version != put.Version {
		t.Errorf("%+v", got)
	}
	if err := sessions.Delete(ctx, "amy"); err != nil {
		t.Error(err)
	}
	_, err = sessions.Get(ctx, "amy")
	code(t, err, client.NotFound)
}

func TestScenes(t *testing.T) {
	sb, _ := start(t, makeExtension(kitscene.New, kitscene.Options{Avatars: index.NewMemory(), Scenes: index.NewMemory()}))
	ctx, scenes := t.Context(), backend.Scenes{Client: sb}
	must(scenes.Create(ctx, backend.NewScene{World: "earth", Name: "town", ID: "town"}))(t)
	_, err := scenes.Create(ctx, backend.NewScene{World: "earth", Name: "town"})
	code(t, err, client.Conflict)
	zoe := must(scenes.CreateAvatar(ctx, backend.NewAvatar{User: "amy", ID: "zoe", NewAvatar: scene.NewAvatar{Name: "Zoe"}}))(t)
	name, elsewhere, closed := "Zoey", "elsewhere", "closed"
	if a := must(scenes.PatchAvatar(ctx, "zoe", backend.AvatarPatch{AvatarPatch: scene.AvatarPatch{Version: &zoe.Version, Name: &name}}))(t); a.Name != name {
		t.Errorf("%+v", a)
	}
	_, err = scenes.Move(ctx, "zoe", "town", &elsewhere)
	code(t, err, client.Conflict)
	if a := must(scenes.Move(ctx, "zoe", "town", nil))(t); a.Scene != "town" {
		t.Errorf("%+v", a)
	}
	if v := must(scenes.Get(ctx, "town"))(t); v.Count != 1 || v.Avatars[0].Name != name {
		t.Errorf("%+v", v)
	}
	eventually(t, "amy has an avatar", func() (backend.AvatarPage, error) { return scenes.Avatars(ctx, "amy", "open", backend.PageQuery{}) },
		func(p backend.AvatarPage) bool { return len(p.Avatars) == 1 })
	if err := scenes.Leave(ctx, "zoe"); err != nil {
		t.Error(err)
	}
	if a := must(scenes.Avatar(ctx, "zoe"))(t); a.Scene != "" {
		t.Errorf("%+v", a)
	}
	if s := must(scenes.Patch(ctx, "town", backend.ScenePatch{Status: &closed}))(t); s.Status != closed {
		t.Errorf("%+v", s)
	}
	eventually(t, "the scene is listed", func() (backend.ScenePage, error) { return scenes.List(ctx, "earth", closed, backend.PageQuery{}) },
		func(p backend.ScenePage) bool { return len(p.Scenes) == 1 })
	if err := errors.Join(scenes.DeleteAvatar(ctx, "zoe"), scenes.Delete(ctx, "town")); err != nil {
		t.Error(err)
	}
	for status, want := range map[string]int{"": 0, "open": 0, "deleted": 1} {
		eventually(t, "avatars of status "+status, func() (backend.AvatarPage, error) { return scenes.Avatars(ctx, "amy", status, backend.PageQuery{}) },
			func(p backend.AvatarPage) bool { return len(p.Avatars) == want })
		for _, world := range []string{"", "earth"} {
			eventually(t, "scenes of status "+status, func() (backend.ScenePage, error) { return scenes.List(ctx, world, status, backend.PageQuery{}) },
				func(p backend.ScenePage) bool { return len(p.Scenes) == want })
		}
	}
}
