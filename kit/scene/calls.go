package scene

import (
	"net/http"

	"switchboard/broker/api"
	"switchboard/internal/wire"
	"switchboard/kit"
)

// calls returns the HTTP calls.
func (s *Scenes) calls() []api.Call {
	return []api.Call{
		{Pattern: "POST /v1/avatars", Scope: api.ScopePush, Body: true, Handle: s.createAvatarCall},
		{Pattern: "GET /v1/avatars", Scope: api.ScopeRead, Query: []string{"user", "status", "cursor", "limit"}, Handle: s.listAvatarsCall},
		{Pattern: "GET /v1/avatars/{avatar}", Scope: api.ScopeRead, Handle: s.getAvatarCall},
		{Pattern: "PATCH /v1/avatars/{avatar}", Scope: api.ScopePush, Conditions: api.IfMatch, Body: true, Handle: s.patchAvatarCall},
		{Pattern: "DELETE /v1/avatars/{avatar}", Scope: api.ScopePush, Conditions: api.IfMatch, Handle: s.deleteAvatarCall},
		{Pattern: "PUT /v1/avatars/{avatar}/scene", Scope: api.ScopePush, Body: true, Handle: s.transferCall},
		{Pattern: "DELETE /v1/avatars/{avatar}/scene", Scope: api.ScopePush, Handle: s.leaveCall},
		{Pattern: "POST /v1/scenes", Scope: api.ScopePush, Body: true, Handle: s.createSceneCall},
		{Pattern: "GET /v1/scenes", Scope: api.ScopeRead, Query: []string{"world", "name", "status", "cursor", "limit"}, Handle: s.listScenesCall},
		{Pattern: "GET /v1/scenes/{scene}", Scope: api.ScopeRead, Handle: s.getSceneCall},
		{Pattern: "PATCH /v1/scenes/{scene}", Scope: api.ScopePush, Conditions: api.IfMatch, Body: true, Handle: s.patchSceneCall},
		{Pattern: "DELETE /v1/scenes/{scene}", Scope: api.ScopePush, Conditions: api.IfMatch, Handle: s.deleteSceneCall},
	}
}

func (s *Scenes) createAvatarCall(r *http.Request) (any, error) {
	var n NewAvatar
	if err := api.DecodeBody(r, &n); err != nil {
		return nil, err
	}
	return answer(s.CreateAvatar(r.Context(), n))
}

func (s *Scenes) listAvatarsCall(r *http.Request) (any, error) {
	q := r.URL.Query().Get
	cursor, limit, err := api.Page(r)
	if err == nil {
		err = wire.CheckName("user", q("user"))
	}
	if err != nil {
		return nil, err
	}
	return answer(s.ListAvatars(r.Context(), q("user"), Status(q("status")), cursor, limit))
}

func (s *Scenes) getAvatarCall(r *http.Request) (any, error) {
	return answer(s.GetAvatar(r.Context(), r.PathValue("avatar")))
}

func (s *Scenes) patchAvatarCall(r *http.Request) (any, error) {
	var p AvatarPatch
	if err := decodePatch(r, &p, &p.Version); err != nil {
		return nil, err
	}
	return answer(s.PatchAvatar(r.Context(), r.PathValue("avatar"), nil, p))
}

func (s *Scenes) deleteAvatarCall(r *http.Request) (any, error) {
	v, err := ifMatch(r)
	if err != nil {
		return nil, err
	}
	return answer(s.DeleteAvatar(r.Context(), r.PathValue("avatar"), nil, v))
}

func (s *Scenes) transferCall(r *http.Request) (any, error) {
	t := struct {
		Scene string  `json:"scene" required:"true"`
		From  *string `json:"from"`
	}{}
	if err := api.DecodeBody(r, &t); err != nil {
		return nil, err
	}
	return answer(s.Transfer(r.Context(), Transfer{Avatar: r.PathValue("avatar"), Scene: t.Scene, From: t.From}))
}

func (s *Scenes) leaveCall(r *http.Request) (any, error) {
	return answer(s.Leave(r.Context(), r.PathValue("avatar")))
}

func (s *Scenes) createSceneCall(r *http.Request) (any, error) {
	var n NewScene
	if err := api.DecodeBody(r, &n); err != nil {
		return nil, err
	}
	return answer(s.CreateScene(r.Context(), n))
}

func (s *Scenes) listScenesCall(r *http.Request) (any, error) {
	q := r.URL.Query().Get
	cursor, limit, err := api.Page(r)
	if err != nil {
		return nil, err
	}
	if name := q("name"); name != "" {
		return answer(s.Find(r.Context(), q("world"), name))
	}
	return answer(s.ListScenes(r.Context(), q("world"), Status(q("status")), cursor, limit))
}

func (s *Scenes) getSceneCall(r *http.Request) (any, error) {
	return answer(s.GetScene(r.Context(), r.PathValue("scene")))
}

func (s *Scenes) patchSceneCall(r *http.Request) (any, error) {
	var p ScenePatch
	if err := decodePatch(r, &p, &p.Version); err != nil {
		return nil, err
	}
	return answer(s.PatchScene(r.Context(), r.PathValue("scene"), p))
}

func (s *Scenes) deleteSceneCall(r *http.Request) (any, error) {
	v, err := ifMatch(r)
	if err != nil {
		return nil, err
	}
	return answer(s.DeleteScene(r.Context(), r.PathValue("scene"), v))
}

// decodePatch decodes a patch and its version, which may be in If-Match, too.
func decodePatch(r *http.Request, patch any, version **int64) error {
	if err := api.DecodeBody(r, patch); err != nil {
		return err
	}
	v, err := ifMatch(r)
	if v != nil {
		*version = v
	}
	return err
}

// ifMatch returns the version that If-Match asks for, or nil for any.
func ifMatch(r *http.Request) (*int64, error) {
	version, err := kit.IfMatch(r.Header)
	if version == 0 {
		return nil, err
	}
	return &version, nil
}
