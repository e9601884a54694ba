// Package scene creates the avatars of a client's user, and moves them between scenes. To follow
// a scene, subscribe to its [Channel] with State: the field [PlaceField] of an avatar is a
// [Place], and the fields [OwnField] are what its player writes, such as a position.
package scene

import (
	"context"

	"switchboard/client"
)

// Scenes are the avatars and scenes of the broker of a client.
type Scenes struct{ *client.Client }

// Channel returns the channel of a scene.
func Channel(scene string) string { return "scene:" + scene }

// PlaceField returns the field of an avatar in its scene. It is away while the player is offline.
// A place with an end (until) belongs to a transfer that is not finished.
func PlaceField(avatar string) string { return "pc/" + avatar }

// OwnField returns a field that the player of an avatar may write, such as position.
func OwnField(avatar, name string) string { return "a/" + avatar + "/" + name }

// Place is the value of [PlaceField].
type Place struct {
	Name    string `json:"name"`
	Figure  string `json:"figure,omitempty"`
	Offline bool   `json:"offline,omitempty"` // the player has not entered since the backend put the avatar there
}

// Page selects a page of a list. The zero value is the first one.
type Page struct {
	Cursor string `json:"cursor,omitempty"` // that the previous page returned
	Limit  int    `json:"limit,omitempty"`  // zero means 100
}

// CreateAvatar creates an avatar of the client's user. It is in no scene. The error is a
// [client.Error] with client.Full if the user has too many.
func (s Scenes) CreateAvatar(ctx context.Context, n NewAvatar) (a Avatar, err error) {
	err = s.Call(ctx, "avatar.create", n, &a)
	return a, err
}

// Avatars returns avatars of the client's user, the oldest first, and the cursor of the next page.
func (s Scenes) Avatars(ctx context.Context, p Page) (list []Avatar, next string, err error) {
	var page struct {
		Avatars []Avatar
		Cursor  string
	}
	err = s.Call(ctx, "avatar.list", p, &page)
	return page.Avatars, page.Cursor, err
}

// PatchAvatar changes an avatar. The error is a [client.Error] with client.Conflict if the version
// differs, and with client.Forbidden if the avatar belongs to another user.
func (s Scenes) PatchAvatar(ctx context.Context, avatar string, p AvatarPatch) (a Avatar, err error) {
	err = s.Call(ctx, "avatar.patch", struct {
		Avatar string `json:"avatar"`
		AvatarPatch
	}{avatar, p}, &a)
	return a, err
}

// DeleteAvatar marks an avatar as deleted, and takes it out of its scene. Only the backend can
// restore it.
func (s Scenes) DeleteAvatar(ctx context.Context, avatar string) (a Avatar, err error) {
	err = s.Call(ctx, "avatar.delete", map[string]string{"avatar": avatar}, &a)
	return a, err
}

// Enter brings an avatar into a scene. Call it after every connect: the avatar is online while a
// client that has entered is connected. The error is a [client.Error] with client.Locked if the
// scene is closed, client.Full if it has no place, and client.Conflict if the avatar is in another
// scene.
func (s Scenes) Enter(ctx context.Context, avatar, scene string) (Avatar, error) {
	return s.move(ctx, "scene.enter", avatar, scene)
}

// Transfer brings an avatar from its scene into another one. Its errors are those of Enter, except
// that Conflict means that another transfer has moved the avatar on.
func (s Scenes) Transfer(ctx context.Context, avatar, scene string) (Avatar, error) {
	return s.move(ctx, "scene.transfer", avatar, scene)
}

func (s Scenes) move(ctx context.Context, method, avatar, scene string) (a Avatar, err error) {
	err = s.Call(ctx, method, map[string]string{"avatar": avatar, "scene": scene}, &a)
	return a, err
}

// Scenes returns scenes of a world, the oldest first, and the cursor of the next page.
func (s Scenes) Scenes(ctx context.Context, world string, p Page) (list []Scene, next string, err error) {
	var page struct {
		Scenes []Scene
		Cursor string
	}
	err = s.Call(ctx, "scene.list", struct {
		World string `json:"world"`
		Page
	}{world, p}, &page)
	return page.Scenes, page.Cursor, err
}

// Get returns a scene with its avatars. It reads all pages.
func (s Scenes) Get(ctx context.Context, scene string) (v View, err error) {
	for cursor := ""; ; {
		var page struct {
			View
			Cursor string
		}
		if err := s.Call(ctx, "scene.get", getRequest{scene, cursor}, &page); err != nil {
			return View{}, err
		}
		page.Online += v.Online
		page.Avatars = append(v.Avatars, page.Avatars...)
		if v, cursor = page.View, page.Cursor; cursor == "" {
			return v, nil
		}
	}
}

// getRequest is the data of scene.get.
type getRequest struct {
	Scene  string `json:"scene"`
	Cursor string `json:"cursor,omitempty"`
}
