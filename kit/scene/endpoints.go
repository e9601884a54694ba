package scene

import (
	"cmp"
	"context"
	"encoding/json"

	"switchboard/broker/api"
	"switchboard/broker/extension"
	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/kit"
)

// Extension returns a function for broker.Options.Extensions.
func Extension(opts Options) func(*extension.Host) (extension.Extension, error) {
	return func(host *extension.Host) (extension.Extension, error) {
		s, err := New(host, opts)
		if err != nil {
			return extension.Extension{}, err
		}
		return s.Extension(), nil
	}
}

// Extension returns the extension of a broker: methods, calls, the channels of avatars, scenes and
// worlds, and the round.
func (s *Scenes) Extension() extension.Extension {
	return extension.Extension{
		Name: "scenes", Methods: s.methods(), Calls: s.calls(), Channels: s.channels(), Run: s.Run,
		Metrics: s.budget.Metrics(), Owned: kit.Owned("avatars", s.budget, s.forget),
	}
}

func (s *Scenes) channels() []extension.ChannelKind {
	scenes := namespace.Rule{
		Name: scenePrefix + "*", StateKeep: namespace.KeepForever, Grace: namespace.GraceNever,
		Subscribe: *s.opts.Read, State: *s.opts.Read, History: *s.opts.Read, Publish: s.opts.Publish, Presence: s.opts.Presence,
	}
	for _, name := range s.opts.Fields {
		most := 0 // the name is the limit
		if name == "*" {
			most = MaxOwnFields
		}
		scenes.Fields = append(scenes.Fields, namespace.FieldRule{
			Pattern: ownGroup + "{n}/" + name, Write: namespace.Users, Of: placeField("{n}"), Bytes: s.opts.FieldBytes, Max: most,
		})
	}
	closed := func(prefix string) extension.ChannelKind {
		return extension.ChannelKind{Rule: namespace.Rule{Name: prefix + "*", StateKeep: namespace.KeepForever}}
	}
	return []extension.ChannelKind{closed(avatarPrefix), closed(worldPrefix), {Rule: scenes}}
}

// The requests of calls and of methods, see [kit.Binder]. A method has no user: that is the user of
// the connection.
type (
	avatarRequest struct {
		Avatar string `json:"avatar" required:"true" path:"avatar"`
	}
	newAvatarRequest struct {
		Key    string          `json:"key"`
		Name   string          `json:"name" required:"true"`
		Figure string          `json:"figure"`
		Data   json.RawMessage `json:"data"`
	}
	patchRequest struct { // of a client, which cannot change the status
		avatarRequest
		Version *int64          `json:"version"`
		Name    *string         `json:"name"`
		Figure  *string         `json:"figure"`
		Data    json.RawMessage `json:"data"`
	}
	deleteRequest struct {
		avatarRequest
		Version *int64 `json:"version" header:"If-Match"`
	}
	enterRequest struct {
		avatarRequest
		Scene string `json:"scene" required:"true"`
	}
	transferRequest struct {
		enterRequest
		From *string `json:"from"`
	}
	listRequest struct {
		kit.Paged
		World  string `json:"world" required:"true" query:"world"`
		Status Status `json:"status" query:"status"`
	}
	sceneRequest struct {
		Scene string `json:"scene" required:"true" path:"scene"`
	}
)

// calls returns the HTTP calls.
func (s *Scenes) calls() []api.Call {
	return []api.Call{
		kit.Call("POST /v1/avatars", api.ScopePush, s.CreateAvatar),
		kit.Call("GET /v1/avatars", api.ScopeRead, func(ctx context.Context, q struct {
			kit.Paged
			User   string `query:"user"`
			Status Status `query:"status"`
		}) (*AvatarPage, error) {
			if err := wire.CheckName("user", q.User); err != nil {
				return nil, err
			}
			return s.ListAvatars(ctx, q.User, q.Status, q.Cursor, q.Limit)
		}),
		kit.Call("GET /v1/avatars/{avatar}", api.ScopeRead, func(ctx context.Context, q avatarRequest) (*Avatar, error) {
			return s.GetAvatar(ctx, q.Avatar)
		}),
		kit.Call("PATCH /v1/avatars/{avatar}", api.ScopePush, func(ctx context.Context, q struct {
			avatarRequest
			IfMatch *int64 `header:"If-Match"`
			AvatarPatch
		}) (*Avatar, error) {
			q.Version = cmp.Or(q.IfMatch, q.Version)
			return s.PatchAvatar(ctx, q.Avatar, nil, q.AvatarPatch)
		}),
		kit.Call("DELETE /v1/avatars/{avatar}", api.ScopePush, func(ctx context.Context, q deleteRequest) (*Avatar, error) {
			return s.DeleteAvatar(ctx, q.Avatar, nil, q.Version)
		}),
		kit.Call("PUT /v1/avatars/{avatar}/scene", api.ScopePush, func(ctx context.Context, q transferRequest) (*Avatar, error) {
			return s.Transfer(ctx, Transfer{Avatar: q.Avatar, Scene: q.Scene, From: q.From})
		}),
		kit.Call("DELETE /v1/avatars/{avatar}/scene", api.ScopePush, func(ctx context.Context, q avatarRequest) (*Avatar, error) {
			return s.Leave(ctx, q.Avatar)
		}),
		kit.Call("POST /v1/scenes", api.ScopePush, s.CreateScene),
		kit.Call("GET /v1/scenes", api.ScopeRead, func(ctx context.Context, q struct {
			listRequest
			Name string `query:"name"`
		}) (any, error) {
			if q.Name != "" {
				return s.Find(ctx, q.World, q.Name)
			}
			return s.ListScenes(ctx, q.World, q.Status, q.Cursor, q.Limit)
		}),
		kit.Call("GET /v1/scenes/{scene}", api.ScopeRead, func(ctx context.Context, q sceneRequest) (*SceneView, error) {
			return s.GetScene(ctx, q.Scene)
		}),
		kit.Call("PATCH /v1/scenes/{scene}", api.ScopePush, func(ctx context.Context, q struct {
			sceneRequest
			IfMatch *int64 `header:"If-Match"`
			ScenePatch
		}) (*Scene, error) {
			q.Version = cmp.Or(q.IfMatch, q.Version)
			return s.PatchScene(ctx, q.Scene, q.ScenePatch)
		}),
		kit.Call("DELETE /v1/scenes/{scene}", api.ScopePush, func(ctx context.Context, q struct {
			sceneRequest
			IfMatch *int64 `header:"If-Match"`
		}) (*Scene, error) {
			return s.DeleteScene(ctx, q.Scene, q.IfMatch)
		}),
	}
}

// methods returns the methods of clients. They create, change, see and move the avatars of their
// own user only.
func (s *Scenes) methods() map[string]session.Method {
	return map[string]session.Method{
		"avatar.create": method(s.createOwn),
		"avatar.list": method(func(ctx context.Context, c session.Caller, q kit.Paged) (*AvatarPage, error) {
			if err := kit.PageLimit(&q.Limit, false); err != nil {
				return nil, err
			}
			return s.ListAvatars(ctx, c.User, "", q.Cursor, q.Limit)
		}),
		"avatar.patch": method(func(ctx context.Context, c session.Caller, q patchRequest) (*Avatar, error) {
			return s.PatchAvatar(ctx, q.Avatar, &c.User, AvatarPatch{Version: q.Version, Name: q.Name, Figure: q.Figure, Data: q.Data})
		}),
		"avatar.delete": method(func(ctx context.Context, c session.Caller, q deleteRequest) (*Avatar, error) {
			return s.DeleteAvatar(ctx, q.Avatar, &c.User, q.Version)
		}),
		"scene.enter": method(func(ctx context.Context, c session.Caller, q enterRequest) (*Avatar, error) {
			return s.Enter(ctx, Transfer{Avatar: q.Avatar, Scene: q.Scene, By: &c})
		}),
		"scene.transfer": method(func(ctx context.Context, c session.Caller, q transferRequest) (*Avatar, error) {
			return s.Transfer(ctx, Transfer{Avatar: q.Avatar, Scene: q.Scene, From: q.From, By: &c})
		}),
		"scene.list": method(func(ctx context.Context, _ session.Caller, q listRequest) (*ScenePage, error) {
			if q.Status == Deleted {
				return nil, wire.Errorf(wire.Forbidden, "status: only the backend lists deleted scenes")
			}
			if err := kit.PageLimit(&q.Limit, false); err != nil {
				return nil, err
			}
			return s.ListScenes(ctx, q.World, q.Status, q.Cursor, q.Limit)
		}),
		"scene.get": method(func(ctx context.Context, c session.Caller, q struct {
			sceneRequest
			Cursor string `json:"cursor"`
		}) (*SceneView, error) {
			if err := c.CheckRead(scenePrefix + q.Scene); err != nil {
				return nil, err
			}
			v, err := s.PageScene(ctx, q.Scene, q.Cursor)
			if err == nil && v.Status == Deleted {
				return nil, s.scenes.NotFound(q.Scene)
			}
			return v, err
		}),
	}
}

// method returns a method for clients with a user.
func method[Q, A any](run func(context.Context, session.Caller, Q) (A, error)) session.Method {
	return session.Decoded(func(ctx context.Context, c session.Caller, q Q) (any, error) {
		if c.User == "" {
			return nil, wire.Errorf(wire.Forbidden, "only clients with a user have avatars")
		}
		return run(ctx, c, q)
	})
}
