package scene

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/queue"
)

// SceneView is a scene with its avatars.
type SceneView struct {
	Scene
	Online  int     `json:"online"`  // avatars whose player is connected
	Avatars []Place `json:"avatars"` // ordered by id
	// Cursor is that of the next page. Without pages, and on the last one, it is "".
	Cursor string `json:"cursor,omitempty"`
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
	c, err := s.scenes.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	places, err := readPlaces(ctx, s.store, id)
	if err != nil {
		return nil, err
	}
	avatars, err := s.avatars.Each(ctx, avatarsOf(places))
	if err != nil {
		return nil, err
	}
	v := &SceneView{Avatars: []Place{}}
	for i, p := range places {
		if avatars[i].in(id) {
			v.add(p)
		}
	}
	v.Scene = *c.show(len(v.Avatars))
	return v, nil
}

// PageScene is GetScene for a client: the avatars come in pages, which end as the lists of clients
// do. cursor is the Cursor of the page before, or "". Online counts the avatars of the page. If the
// page is not all, Count may be some seconds old.
func (s *Scenes) PageScene(ctx context.Context, id, cursor string) (*SceneView, error) {
	c, err := s.scenes.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	v := &SceneView{Avatars: []Place{}}
	read := queue.StateRead{Channel: sceneChannel(id), Prefix: placeGroup}
	if cursor != "" {
		if checkID("cursor", cursor) != nil {
			return nil, wire.BadCursor()
		}
		read.Cursor = placeField(cursor)
	}
	for done := 0; ; {
		if read.Limit = kit.NextBatch(ctx, s.opts.Capacity, done); read.Limit == 0 {
			v.Cursor = strings.TrimPrefix(read.Cursor, placeGroup)
			break
		}
		page, err := kit.ReadState(ctx, s.store, read)
		if err == nil {
			err = s.addPlaces(ctx, v, id, page.Fields)
		}
		if err != nil {
			return nil, err
		}
		done += len(page.Fields)
		if read.Cursor = page.Next; read.Cursor == "" {
			break
		}
	}
	count := len(v.Avatars)
	if cursor != "" || v.Cursor != "" {
		counts, err := s.opts.Avatars.Count(ctx, sceneList(id))
		if err != nil {
			return nil, err
		}
		count = counts[0]
	}
	v.Scene = *c.show(count)
	return v, nil
}

// addPlaces adds to v the avatars of places whose records name the scene. It reads the records and
// the fields of the players.
func (s *Scenes) addPlaces(ctx context.Context, v *SceneView, scene string, places []queue.NamedField) error {
	ids, reads := make([]string, len(places)), make([]queue.StateRead, len(places))
	for i, f := range places {
		ids[i] = strings.TrimPrefix(f.Name, placeGroup)
		reads[i] = queue.StateRead{Channel: sceneChannel(scene), Prefix: ownFields(ids[i])}
	}
	avatars, err := s.avatars.Each(ctx, ids)
	if err != nil {
		return err
	}
	for i, o := range s.store.ReadStates(ctx, reads) {
		if o.Err != nil {
			return fmt.Errorf("read %s: %w", sceneChannel(scene), o.Err)
		}
		if avatars[i].in(scene) {
			p, err := parsePlace(places[i].Field)
			if err != nil {
				return fmt.Errorf("read %s: %w", sceneChannel(scene), err)
			}
			var own map[string]json.RawMessage
			for _, f := range o.Value.Fields {
				if own == nil {
					own = map[string]json.RawMessage{}
				}
				own[strings.TrimPrefix(f.Name, ownFields(ids[i]))] = f.Value
			}
			v.add(listedPlace{p, ids[i], own})
		}
	}
	return nil
}

// add adds an avatar.
func (v *SceneView) add(p listedPlace) {
	if p.online() {
		v.Online++
	}
	v.Avatars = append(v.Avatars, Place{p.avatar, p.value.Name, p.value.Figure, p.online(), p.fields})
}

// readPlaces reads all places of a scene, ordered by avatar.
func readPlaces(ctx context.Context, r kit.StateReader, scene string) (list []listedPlace, err error) {
	fields := map[string]map[string]json.RawMessage{}
	// The fields a/ come before the places: each part of a place that is read is read with it, or
	// belongs to a place that has ended.
	read := queue.StateRead{Channel: sceneChannel(scene), Bytes: state.PageBytes}
	for page, err := range kit.StatePages(ctx, r, read) {
		if err != nil {
			return nil, err
		}
		for _, f := range page.Fields {
			if avatar, ok := strings.CutPrefix(f.Name, placeGroup); ok {
				p, err := parsePlace(f.Field)
				if err != nil {
					return nil, fmt.Errorf("read %s: %w", sceneChannel(scene), err)
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
	}
	return list, nil
}

func avatarsOf(places []listedPlace) []string {
	ids := make([]string, len(places))
	for i, p := range places {
		ids[i] = p.avatar
	}
	return ids
}
