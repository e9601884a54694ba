package backend

import (
	"context"
	"net/http"
	"net/url"

	"switchboard/client/scene"
)

// Scenes are the avatars and scenes of a broker, see docs/scenes.md. The errors of all calls are an
// [*Error].
type Scenes struct{ *Client }

// NewAvatar describes an avatar to create. User and Name are required.
type NewAvatar struct {
	User string `json:"user"`
	ID   string `json:"id,omitempty"` // Zero means a new one
	scene.NewAvatar
}

// AvatarPatch changes an avatar. Nil members stay.
type AvatarPatch struct {
	scene.AvatarPatch
	Status *string `json:"status,omitempty"` // open restores a deleted avatar
}

// NewScene describes a scene to create. World and Name are required.
type NewScene struct {
	World  string `json:"world"`
	Name   string `json:"name"`
	Key    string `json:"key,omitempty"`    // instead of ID: a repeated call returns the same scene
	ID     string `json:"id,omitempty"`     // Zero means a new one
	Status string `json:"status,omitempty"` // open or closed. Zero means open
	Time   string `json:"time,omitempty"`
	Data   any    `json:"data,omitempty"`
}

// ScenePatch changes a scene. Nil members stay.
type ScenePatch struct {
	Version *int64  `json:"version,omitempty"` // the version that must not have changed
	Name    *string `json:"name,omitempty"`
	Status  *string `json:"status,omitempty"` // open, closed or deleted
	Time    *string `json:"time,omitempty"`
	Data    any     `json:"data,omitempty"`
}

// AvatarPage is a page of avatars, the oldest first.
type AvatarPage struct {
	Avatars []scene.Avatar `json:"avatars"`
	Cursor  string         `json:"cursor,omitempty"` // of the next page, "" for the last one
}

// ScenePage is a page of scenes, the oldest first. Their counts may be some seconds old.
type ScenePage struct {
	Scenes []scene.Scene `json:"scenes"`
	Cursor string        `json:"cursor,omitempty"` // of the next page, "" for the last one
}

func avatarPath(id, rest string) string { return "/v1/avatars/" + url.PathEscape(id) + rest }

func scenePath(id string) string { return "/v1/scenes/" + url.PathEscape(id) }

// CreateAvatar creates an avatar of a user. It is in no scene.
func (s Scenes) CreateAvatar(ctx context.Context, n NewAvatar) (a scene.Avatar, err error) {
	err = s.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/avatars", Body: n}, &a)
	return a, err
}

// Avatars returns a page of the avatars of a user. status is deleted, or open or "" for those that
// are not deleted.
func (s Scenes) Avatars(ctx context.Context, user, status string, p PageQuery) (AvatarPage, error) {
	v := p.values()
	v.Set("user", user)
	if status != "" {
		v.Set("status", status)
	}
	return get[AvatarPage](ctx, s.Client, "/v1/avatars", v)
}

// Avatar returns an avatar.
func (s Scenes) Avatar(ctx context.Context, id string) (scene.Avatar, error) {
	return get[scene.Avatar](ctx, s.Client, avatarPath(id, ""), nil)
}

// PatchAvatar changes an avatar.
func (s Scenes) PatchAvatar(ctx context.Context, id string, p AvatarPatch) (a scene.Avatar, err error) {
	err = s.Call(ctx, Request{Method: http.MethodPatch, Path: avatarPath(id, ""), Body: p}, &a)
	return a, err
}

// DeleteAvatar marks an avatar as deleted, and takes it out of its scene. A version is the one that
// it must have.
func (s Scenes) DeleteAvatar(ctx context.Context, id string, version ...int64) error {
	return s.Call(ctx, Request{Method: http.MethodDelete, Path: avatarPath(id, ""), Header: condition(version...)}, nil)
}

// Move brings an avatar into a scene. from is the scene that it must be in, "" for none, or nil for
// any. The code of the error is client.Locked if the scene is closed, client.Full if it has no
// place, and client.Conflict if the avatar is not in from.
func (s Scenes) Move(ctx context.Context, avatar, to string, from *string) (a scene.Avatar, err error) {
	body := struct {
		Scene string  `json:"scene"`
		From  *string `json:"from,omitempty"`
	}{to, from}
	err = s.Call(ctx, Request{Method: http.MethodPut, Path: avatarPath(avatar, "/scene"), Body: body}, &a)
	return a, err
}

// Leave takes an avatar out of its scene.
func (s Scenes) Leave(ctx context.Context, avatar string) error {
	return s.Call(ctx, Request{Method: http.MethodDelete, Path: avatarPath(avatar, "/scene")}, nil)
}

// Create creates a scene. The code of the error is client.Conflict if its name is taken in the
// world.
func (s Scenes) Create(ctx context.Context, n NewScene) (created scene.Scene, err error) {
	err = s.Call(ctx, Request{Method: http.MethodPost, Path: "/v1/scenes", Body: n}, &created)
	return created, err
}

// List returns a page of the scenes of a world, or of all worlds if it is "". status is open,
// closed, deleted, or "" for those that are not deleted.
func (s Scenes) List(ctx context.Context, world, status string, p PageQuery) (ScenePage, error) {
	v := p.values()
	if world != "" {
		v.Set("world", world)
	}
	if status != "" {
		v.Set("status", status)
	}
	return get[ScenePage](ctx, s.Client, "/v1/scenes", v)
}

// Named returns the scene of a world with a name, and its avatars.
func (s Scenes) Named(ctx context.Context, world, name string) (scene.View, error) {
	return get[scene.View](ctx, s.Client, "/v1/scenes", values("world", world, "name", name))
}

// Get returns a scene with its avatars.
func (s Scenes) Get(ctx context.Context, id string) (scene.View, error) {
	return get[scene.View](ctx, s.Client, scenePath(id), nil)
}

// Patch changes a scene.
func (s Scenes) Patch(ctx context.Context, id string, p ScenePatch) (changed scene.Scene, err error) {
	err = s.Call(ctx, Request{Method: http.MethodPatch, Path: scenePath(id), Body: p}, &changed)
	return changed, err
}

// Delete marks a scene as deleted. Its avatars are in no scene then. A version is the one that it
// must have.
func (s Scenes) Delete(ctx context.Context, id string, version ...int64) error {
	return s.Call(ctx, Request{Method: http.MethodDelete, Path: scenePath(id), Header: condition(version...)}, nil)
}
