package scene

import (
	"context"
	"encoding/json"

	"switchboard/broker/session"
	"switchboard/internal/wire"
	"switchboard/kit"
)

// The data of the methods. There is no user: that is the user of the connection.
type (
	pageRequest struct {
		Cursor string `json:"cursor"`
		Limit  int    `json:"limit"`
	}
	avatarRequest struct {
		Avatar string `json:"avatar" required:"true"`
	}
	newAvatarRequest struct {
		Key    string          `json:"key"`
		Name   string          `json:"name" required:"true"`
		Figure string          `json:"figure"`
		Data   json.RawMessage `json:"data"`
	}
	patchRequest struct {
		avatarRequest
		Version *int64          `json:"version"`
		Name    *string         `json:"name"`
		Figure  *string         `json:"figure"`
		Data    json.RawMessage `json:"data"`
	}
	deleteRequest struct {
		avatarRequest
		Version *int64 `json:"version"`
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
		pageRequest
		World  string `json:"world" required:"true"`
		Status Status `json:"status"`
	}
	sceneRequest struct {
		Scene  string `json:"scene" required:"true"`
		Cursor string `json:"cursor"`
	}
)

// methods returns the methods of clients. They create, change, see and move the avatars of their
// own user only.
func (s *Scenes) methods() map[string]session.Method {
	return map[string]session.Method{
		"avatar.create": method(s.createOwn),
		"avatar.list": method(func(ctx context.Context, c session.Caller, q pageRequest) (*AvatarPage, error) {
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
		"scene.get": method(func(ctx context.Context, c session.Caller, q sceneRequest) (*SceneView, error) {
			if err := c.CheckRead(scenePrefix + q.Scene); err != nil {
				return nil, err
			}
			v, err := s.PageScene(ctx, q.Scene, q.Cursor)
			if err == nil && v.Status == Deleted {
				return nil, notFound("scene", q.Scene)
			}
			return v, err
		}),
	}
}

// method returns a method for clients with a user.
func method[Q, A any](run func(context.Context, session.Caller, Q) (*A, error)) session.Method {
	return session.Decoded(func(ctx context.Context, c session.Caller, q Q) (any, error) {
		if c.User == "" {
			return nil, wire.Errorf(wire.Forbidden, "only clients with a user have avatars")
		}
		return answer(run(ctx, c, q))
	})
}

// answer returns the answer of a method or a call: no result with an error.
func answer[T any](result *T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return result, nil
}
