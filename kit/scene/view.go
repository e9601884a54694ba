package scene

import (
	"context"
	"encoding/json"
	"strings"

	"switchboard/internal/state"
	"switchboard/kit"
	"switchboard/queue"
)

// SceneView is a scene with its avatars.
type SceneView struct {
	Scene
	Online  int     `json:"online"`  // avatars whose player is connected
	Avatars []Place `json:"avatars"` // ordered by id
}

// Place is an avatar in a scene.
type Place struct {
	Avatar string `json:"avatar"` // its id
	Name   string `json:"name"`
	Figure string `json:"figure,omitempty"`
	Online bool   `json:"online"`
	// Fields are what the player has written: the fields a/{avatar}/X, by X.
	Fields map[string]json.RawMessage `json:"fields,omitempty"`
}

// listedPlace is a place and the avatar's own fields.
type listedPlace struct {
	*storedPlace
	avatar string
	fields map[string]json.RawMessage
}

// GetScene returns a scene and the avatars whose records name it, also if the scene is deleted.
func (s *Scenes) GetScene(ctx context.Context, id string) (*SceneView, error) {
	c, err := s.readScene(ctx, id)
	if err != nil {
		return nil, err
	}
	places, err := s.readPlaces(ctx, id)
	if err != nil {
		return nil, err
	}
	avatars, err := readAvatars(ctx, s.host, avatarsOf(places))
	if err != nil {
		return nil, err
	}
	v := &SceneView{Avatars: []Place{}}
	for i, p := range places {
		if !avatars[i].in(id) {
			continue
		}
		if p.online() {
			v.Online++
		}
		v.Avatars = append(v.Avatars, Place{p.avatar, p.value.Name, p.value.Figure, p.online(), p.fields})
	}
	v.Scene = *c.show(len(v.Avatars))
	return v, nil
}

// readPlaces reads all places of a scene, ordered by avatar.
func (s *Scenes) readPlaces(ctx context.Context, scene string) ([]listedPlace, error) {
	return readPlaces(ctx, s.host, scene)
}

func readPlaces(ctx context.Context, r kit.StateReader, scene string) (list []listedPlace, err error) {
	fields := map[string]map[string]json.RawMessage{}
	// The fields a/ come before the places: each part of a place that is read is read with it, or
	// belongs to a place that has ended.
	read := queue.StateRead{Channel: sceneChannel(scene), Bytes: state.PageBytes}
	for {
		o := r.ReadStates(ctx, []queue.StateRead{read})[0]
		if o.Err != nil {
			return nil, inChannel("read", sceneChannel(scene), o.Err)
		}
		for _, f := range o.Value.Fields {
			if avatar, ok := strings.CutPrefix(f.Name, placeGroup); ok {
				p, err := parsePlace(f.Field)
				if err != nil {
					return nil, inChannel("read", sceneChannel(scene), err)
				}
				list = append(list, listedPlace{p, avatar, fields[avatar]})
			} else if rest, ok := strings.CutPrefix(f.Name, ownGroup); ok {
				avatar, name, _ := strings.Cut(rest, "/")
				if fields[avatar] == nil {
					fields[avatar] = map[string]json.RawMessage{}
				}
				fields[avatar][name] = f.Value
			}
		}
		if read.Cursor = o.Value.Next; read.Cursor == "" {
			return list, nil
		}
	}
}

func avatarsOf(places []listedPlace) []string {
	ids := make([]string, len(places))
	for i, p := range places {
		ids[i] = p.avatar
	}
	return ids
}
