package scene

import (
	"context"
	"encoding/json"

	"switchboard/broker/session"
	"switchboard/internal/wire"
)

// methodRequest is the data of all methods. Members that a method does not need are ignored.
type methodRequest struct {
	Avatar  string          `json:"avatar"`
	Scene   string          `json:"scene"`
	From    *string         `json:"from"`
	World   string          `json:"world"`
	Name    *string         `json:"name"`
	Figure  *string         `json:"figure"`
	Data    json.RawMessage `json:"data"`
	Version *int64          `json:"version"`
	Status  Status          `json:"status"`
	Cursor  string          `json:"cursor"`
	Limit   int             `json:"limit"`
}

// methods returns the methods of clients. They create, change, see and move the avatars of their
// own user only.
func (s *Scenes) methods() map[string]session.Method {
	type method = func(ctx context.Context, c *session.Caller, r methodRequest) (any, error)
	all := map[string]method{
		"avatar.create": func(ctx context.Context, c *session.Caller, r methodRequest) (any, error) {
			return s.createOwn(ctx, c.User, r)
		},
		"avatar.list": func(ctx context.Context, c *session.Caller, r methodRequest) (any, error) {
			return answer(s.ListAvatars(ctx, c.User, "", r.Cursor, r.Limit))
		},
		"avatar.patch": func(ctx context.Context, c *session.Caller, r methodRequest) (any, error) {
			return answer(s.PatchAvatar(ctx, r.Avatar, &c.User, AvatarPatch{Version: r.Version, Name: r.Name, Figure: r.Figure, Data: r.Data}))
		},
		"avatar.delete": func(ctx context.Context, c *session.Caller, r methodRequest) (any, error) {
			return answer(s.DeleteAvatar(ctx, r.Avatar, &c.User, r.Version))
		},
		"scene.enter": func(ctx context.Context, c *session.Caller, r methodRequest) (any, error) {
			return answer(s.Enter(ctx, Transfer{Avatar: r.Avatar, Scene: r.Scene, By: c}))
		},
		"scene.transfer": func(ctx context.Context, c *session.Caller, r methodRequest) (any, error) {
			return answer(s.Transfer(ctx, Transfer{Avatar: r.Avatar, Scene: r.Scene, From: r.From, By: c}))
		},
		"scene.list": func(ctx context.Context, _ *session.Caller, r methodRequest) (any, error) {
			if r.Status == Deleted {
				return nil, wire.Errorf(wire.Forbidden, "status: only the backend lists deleted scenes")
			}
			return answer(s.ListScenes(ctx, r.World, r.Status, r.Cursor, r.Limit))
		},
		"scene.get": func(ctx context.Context, _ *session.Caller, r methodRequest) (any, error) {
			v, err := s.GetScene(ctx, r.Scene)
			if err == nil && v.Status == Deleted {
				return nil, notFound("scene", r.Scene)
			}
			return answer(v, err)
		},
	}
	methods := make(map[string]session.Method, len(all))
	for name, run := range all {
		methods[name] = func(ctx context.Context, c session.Caller, data json.RawMessage) (any, error) {
			if c.User == "" {
				return nil, wire.Errorf(wire.Forbidden, "%s: only clients with a user have avatars", name)
			}
			var r methodRequest
			if len(data) > 0 {
				if err := json.Unmarshal(data, &r); err != nil {
					return nil, wire.JSONError(err)
				}
			}
			return run(ctx, &c, r)
		}
	}
	return methods
}

// createOwn creates an avatar of a client's user, with a random id.
func (s *Scenes) createOwn(ctx context.Context, user string, r methodRequest) (any, error) {
	n := NewAvatar{User: user, Data: r.Data}
	if r.Name != nil {
		n.Name = *r.Name
	}
	if r.Figure != nil {
		n.Figure = *r.Figure
	}
	counts, err := s.opts.Avatars.Count(ctx, userList(user))
	if err != nil {
		return nil, err
	}
	if counts[0] >= s.opts.PerUser {
		return nil, &wire.DetailedError{
			Err: wire.Errorf(wire.Full, "user %s has %d avatars, that is all", user, counts[0]), Data: map[string]int{"max": s.opts.PerUser},
		}
	}
	return answer(s.CreateAvatar(ctx, n))
}

// answer returns the answer of a method or a call: no result with an error.
func answer[T any](result *T, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	return result, nil
}
