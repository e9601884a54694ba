package scene

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/kit/index"
	"switchboard/queue"
)

const (
	scenePrefix  = "scene:"
	sceneField   = "$scene"
	pendingField = "$$pending"
)

func sceneChannel(id string) string { return scenePrefix + id }

// Scene is a place where avatars meet.
type Scene struct {
	ID string `json:"id"`
	SceneFields
	Version int64 `json:"version"` // it changes with every change of the scene, not of its avatars
	// Count is the number of avatars in the scene, online or offline. In lists it may be some seconds
	// old.
	Count int `json:"count"`
}

// SceneFields are what the store and the callers see of a scene.
type SceneFields struct {
	World   string          `json:"world"`
	Name    string          `json:"name"` // unique in its world, except for deleted scenes
	Status  Status          `json:"status"`
	Time    string          `json:"time,omitempty"` // the time in the scene, as the backend writes it
	Data    json.RawMessage `json:"data,omitempty"`
	Created int64           `json:"created"` // Unix ms
}

// sceneRecord is the value of $scene.
type sceneRecord struct {
	Format int `json:"v"`
	SceneFields
}

func (r *sceneRecord) check() error {
	if r.Status != Open && r.Status != Closed && r.Status != Deleted {
		return wire.Errorf(wire.BadRequest, "status: want %s, %s or %s", Open, Closed, Deleted)
	}
	return cmp.Or(checkID("world", r.World), checkName(r.Name), checkText("time", r.Time), checkData(r.Data))
}

// storedScene is a scene as its channel has it.
type storedScene struct {
	kit.Record[sceneRecord]
	key     string
	pending kit.Record[pending]
}

func (c *storedScene) show(count int) *Scene { return &Scene{c.key, c.Value.SceneFields, c.ID, count} }

// card returns the entry of a scene in the lists.
func (c *storedScene) card() index.Card {
	list := worldList(c.Value.World)
	if c.Value.Status == Deleted {
		list = deletedList(list)
	}
	return index.Card{ID: c.key, Version: c.ID, Lists: map[string]int64{list: c.Value.Created, allScenes: c.Value.Created}}
}

// scenesIn returns the scenes of a store.
func scenesIn(states kit.StateReader, lists index.Index) kit.Documents[*storedScene] {
	read := queue.StateRead{Fields: []string{sceneField, pendingField}}
	return kit.Documents[*storedScene]{
		Kind: "scene", Prefix: scenePrefix, Record: sceneField, States: states, Index: lists, Whole: read, Brief: read, Parse: parseScene,
		Card: (*storedScene).card, CheckID: func(id string) error { return checkID("scene", id) },
	}
}

func parseScene(id string, page *queue.StatePage) (*storedScene, error) {
	c := &storedScene{key: id}
	var err error
	for _, f := range page.Fields {
		switch f.Name {
		case sceneField:
			err = c.Read(f.Field)
		case pendingField:
			err = c.pending.Read(f.Field)
		}
		if err != nil {
			return nil, err
		}
	}
	return c, kit.CheckFormat(c.Value.Format, formatVersion)
}

// NewScene describes a scene to create.
type NewScene struct {
	ID string `json:"id"` // zero means a random id
	// Key makes the call idempotent: a repeated call returns the same scene. It must not be used
	// together with ID.
	Key    string          `json:"key"`
	World  string          `json:"world" required:"true"`
	Name   string          `json:"name" required:"true"`
	Status Status          `json:"status"` // zero means Open
	Time   string          `json:"time"`
	Data   json.RawMessage `json:"data"`
}

// CreateScene creates a scene. It is a Conflict if its name or its id is taken. A repeated Key
// returns the scene as it is.
func (s *Scenes) CreateScene(ctx context.Context, n NewScene) (*Scene, error) {
	if err := kit.CheckKey(n.ID, n.Key); err != nil {
		return nil, err
	}
	id := idOf(n.ID, "", n.Key)
	r := sceneRecord{formatVersion, SceneFields{
		World: n.World, Name: n.Name, Status: cmp.Or(n.Status, Open), Time: n.Time, Data: n.Data, Created: now(),
	}}
	if err := cmp.Or(checkID("id", id), r.check()); err != nil {
		return nil, err
	}
	if r.Status == Deleted {
		return nil, wire.Errorf(wire.BadRequest, "status: a new scene is %s or %s", Open, Closed)
	}
	if n.Key != "" {
		if c, err := s.scenes.Get(ctx, id); !kit.HasCode(err, wire.NotFound) {
			return s.showScene(ctx, c, err)
		}
	}
	c := &storedScene{key: id}
	err := s.writeNamed(ctx, c, r, pending{Status: Deleted})
	switch {
	case errors.Is(err, kit.ErrChanged) && n.Key != "": // the same call has been made meanwhile
		c, err := s.scenes.Get(ctx, id)
		return s.showScene(ctx, c, err)
	case errors.Is(err, kit.ErrChanged):
		err = wire.Errorf(wire.Conflict, "there is a scene %s", id)
	}
	if err != nil {
		return nil, err
	}
	s.scenes.Show(ctx, c.card())
	return s.showScene(ctx, c, nil)
}

// showScene returns a scene that was read or written, unless err is the error of that.
func (s *Scenes) showScene(ctx context.Context, c *storedScene, err error) (*Scene, error) {
	if err != nil {
		return nil, err
	}
	counts, err := s.opts.Avatars.Count(ctx, sceneList(c.key))
	if err != nil {
		return nil, err
	}
	return c.show(counts[0]), nil
}

// ScenePatch changes members of a scene. Nil members stay.
type ScenePatch struct {
	Version *int64          `json:"version"` // the version that must not have changed
	Name    *string         `json:"name"`
	Status  *Status         `json:"status"` // Deleted removes all places; another one restores a deleted scene
	Time    *string         `json:"time"`
	Data    json.RawMessage `json:"data"`
}

func (p *ScenePatch) apply(r *sceneRecord) error {
	kit.Patch(&r.Name, p.Name)
	kit.Patch(&r.Status, p.Status)
	kit.Patch(&r.Time, p.Time)
	if p.Data != nil {
		r.Data = p.Data
	}
	return r.check()
}

// PatchScene changes a scene. A new name must be free.
func (s *Scenes) PatchScene(ctx context.Context, id string, p ScenePatch) (*Scene, error) {
	return s.editScene(ctx, id, p.Version, func(_ *storedScene, r *sceneRecord) error { return p.apply(r) })
}

// editScene changes the record of a scene, unless the error of edit is errSame. A version of nil
// means any.
func (s *Scenes) editScene(ctx context.Context, id string, version *int64, edit func(*storedScene, *sceneRecord) error) (*Scene, error) {
	c, err := s.scenes.Edit(ctx, id, func(c *storedScene) error {
		r := c.Value
		err := checkVersion("scene", c.key, version, c.ID, c.show(0))
		if err == nil {
			err = edit(c, &r)
		}
		switch err {
		case nil:
			return s.writeScene(ctx, c, r)
		case errSame:
			return s.settleScene(ctx, id) // an earlier call may have failed after its change
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	s.scenes.Show(ctx, c.card())
	return s.showScene(ctx, c, nil)
}

// DeleteScene marks a scene as deleted, frees its name, and removes the places in it. Its avatars
// are in no scene. If it is deleted, nothing changes.
func (s *Scenes) DeleteScene(ctx context.Context, id string, version *int64) (*Scene, error) {
	return s.editScene(ctx, id, version, func(c *storedScene, r *sceneRecord) error {
		if r.Status == Deleted && !c.pending.Exists() {
			return errSame
		}
		r.Status = Deleted
		return nil
	})
}

// writeScene writes the record of a scene, if it has not changed.
func (s *Scenes) writeScene(ctx context.Context, c *storedScene, r sceneRecord) error {
	if c.pending.Exists() { // an earlier change of the name
		if err := s.settleScene(ctx, c.key); err != nil {
			return err
		}
		return kit.ErrChanged
	}
	old := c.Value
	if r.Status != Deleted && (r.Name != old.Name || old.Status == Deleted) {
		return s.writeNamed(ctx, c, r, pending{Name: old.Name, Status: old.Status})
	}
	if r.Status == Deleted {
		r.Name = old.Name // its name is freed below
	}
	if err := s.scenes.Note(ctx, c.key); err != nil {
		return err
	}
	id, err := s.change(ctx, sceneChannel(c.key), &state.Update{
		Ops: []state.Op{kit.Set(sceneField, r)}, If: []state.Condition{kit.Same(sceneField, c.ID), kit.Same(pendingField, 0)},
	})
	if err != nil {
		return err
	}
	c.Value, c.ID = r, id
	if err := s.fault("scene"); err != nil || r.Status != Deleted {
		return err
	}
	return s.settleScene(ctx, c.key)
}

// ScenePage is a part of the scenes of a world.
type ScenePage struct {
	Scenes []*Scene `json:"scenes"`
	Cursor string   `json:"cursor,omitempty"` // of the next page
}

// ListScenes returns scenes of a world, or of all worlds if it is "", the oldest first: those that
// are not deleted, or those with a status.
func (s *Scenes) ListScenes(ctx context.Context, world string, status Status, cursor string, limit int) (*ScenePage, error) {
	list := allScenes
	if world != "" {
		if err := checkID("world", world); err != nil {
			return nil, err
		}
		list = worldList(world)
	}
	switch status {
	case "", Open, Closed:
	case Deleted:
		if world != "" {
			list = deletedList(list)
		}
	default:
		return nil, wire.Errorf(wire.BadRequest, "status: want %s, %s or %s", Open, Closed, Deleted)
	}
	scenes, next, err := s.scenes.List(ctx, index.Query{List: list, Cursor: cursor, Limit: limit}, func(c *storedScene) bool {
		is := c.Value.Status
		return (world == "" || c.Value.World == world) && (is == status || status == "" && is != Deleted)
	})
	if err != nil {
		return nil, err
	}
	lists := make([]string, len(scenes))
	for i, c := range scenes {
		lists[i] = sceneList(c.key)
	}
	counts, err := s.opts.Avatars.Count(ctx, lists...)
	if err != nil {
		return nil, err
	}
	p := &ScenePage{Scenes: make([]*Scene, len(scenes)), Cursor: next}
	for i, c := range scenes {
		p.Scenes[i] = c.show(counts[i])
	}
	return p, nil
}
