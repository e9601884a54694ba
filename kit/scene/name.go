package scene

import (
	"context"
	"errors"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
	"switchboard/queue"
)

// A name of a scene is a field of its world, with the id of the scene. A scene takes a name in
// three steps:
//
//  1. It claims the name with a lease, under the condition that the field is absent.
//  2. It writes its record with the new name, and in $$pending what was before.
//  3. It confirms the name: it sets the field without a lease, under the condition that the claim
//     is still the one of step 1. Then it frees the old name, and deletes $$pending.
//
// If that stops, settleScene does the rest. If another scene has got the name meanwhile, it writes
// back what was before: the old name, which the scene still has, or the status Deleted.

const (
	worldPrefix = "world:"
	nameGroup   = "$$scene/"
)

func worldChannel(world string) string { return worldPrefix + world }
func nameField(name string) string     { return nameGroup + part(name) }

// pending is the value of $$pending.
type pending struct {
	Name   string `json:"name,omitempty"` // "" for none
	Status Status `json:"status"`
}

// storedName is the field of a name.
type storedName struct {
	kit.Record[string] // the id of the scene
	leased             bool
}

func (s *Scenes) readName(ctx context.Context, world, name string) (n storedName, err error) {
	page, err := kit.ReadState(ctx, s.store, queue.StateRead{Channel: worldChannel(world), Fields: []string{nameField(name)}})
	if err != nil || len(page.Fields) == 0 {
		return n, err
	}
	return parseName(page.Fields[0])
}

func parseName(f queue.NamedField) (storedName, error) {
	n := storedName{leased: f.Lease != 0}
	return n, n.Read(f.Field)
}

// setName writes the field of a name, with a lease or without.
func (s *Scenes) setName(ctx context.Context, r *sceneRecord, scene string, lease bool, only state.Condition) (int64, error) {
	op := kit.Set(nameField(r.Name), scene)
	if lease {
		op.TTL = s.opts.Lease
	}
	return s.change(ctx, worldChannel(r.World), &state.Update{Ops: []state.Op{op}, If: []state.Condition{only}})
}

// claim claims the name of a record, and returns the id of the claim.
func (s *Scenes) claim(ctx context.Context, r *sceneRecord, scene string) (int64, error) {
	return kit.Retry(ctx, "world "+r.World, func() (int64, error) {
		n, err := s.readName(ctx, r.World, r.Name)
		switch {
		case err != nil:
			return 0, err
		case n.Exists() && n.Value != scene:
			return 0, nameTaken(r, n.Value)
		}
		return s.setName(ctx, r, scene, true, kit.Same(nameField(r.Name), n.ID)) // n is of an earlier try
	})
}

func nameTaken(r *sceneRecord, by string) error {
	return wire.Errorf(wire.Conflict, "world %s has a scene %q", r.World, r.Name).With(map[string]string{"scene": by})
}

// writeNamed writes a record with a new name, and takes the name. before is the pending value.
func (s *Scenes) writeNamed(ctx context.Context, c *storedScene, r sceneRecord, before pending) error {
	if err := s.scenes.Note(ctx, c.key); err != nil {
		return err
	}
	writeCtx, cancel := context.WithTimeout(ctx, s.opts.Delay/2) // the round must look after the last step
	defer cancel()
	claimed, err := s.claim(writeCtx, &r, c.key)
	if err == nil {
		err = s.fault("claim")
	}
	if err != nil {
		return err
	}
	id, err := s.change(writeCtx, sceneChannel(c.key), &state.Update{
		Ops: []state.Op{kit.Set(sceneField, r), kit.Set(pendingField, before)},
		If:  []state.Condition{kit.Same(sceneField, c.ID), kit.Same(pendingField, 0)},
	})
	if err == nil {
		err = s.fault("scene")
	}
	if err != nil {
		return err
	}
	c.Value, c.ID, c.pending.Value, c.pending.ID = r, id, before, id
	if _, err = s.setName(ctx, &r, c.key, false, kit.Same(nameField(r.Name), claimed)); err == nil {
		err = s.fault("name")
	}
	if err == nil {
		err = s.finishName(ctx, c)
	}
	if errors.Is(err, kit.ErrChanged) {
		return s.afterNameLoss(ctx, c, &r)
	}
	return err
}

// afterNameLoss goes on after a change of a name that others have changed or finished.
func (s *Scenes) afterNameLoss(ctx context.Context, c *storedScene, want *sceneRecord) error {
	if err := s.settleScene(ctx, c.key); err != nil {
		return err
	}
	again, err := s.scenes.Get(ctx, c.key)
	if err != nil {
		return err
	}
	if again.Value.Name != want.Name || again.Value.Status == Deleted {
		return wire.Errorf(wire.Conflict, "scene %s has been changed by others meanwhile", c.key).With(again.show(0))
	}
	*c = *again
	return nil
}

// finishName frees the name that a scene had before, and deletes $$pending.
func (s *Scenes) finishName(ctx context.Context, c *storedScene) error {
	if before := c.pending.Value.Name; before != "" && before != c.Value.Name {
		if err := s.freeName(ctx, c, before); err != nil {
			return err
		}
	}
	_, err := s.change(ctx, sceneChannel(c.key), &state.Update{
		Ops: []state.Op{kit.Delete(pendingField)}, If: []state.Condition{kit.Same(pendingField, c.pending.ID)},
	})
	if err == nil {
		c.pending.ID = 0
	}
	return err
}

// freeName frees a name if the scene has it in the world, and if its record does not.
func (s *Scenes) freeName(ctx context.Context, c *storedScene, name string) error {
	n, err := s.readName(ctx, c.Value.World, name)
	if err != nil || n.Value != c.key {
		return err
	}
	again, err := s.scenes.Get(ctx, c.key) // after the name
	if err != nil {
		return err
	}
	if again.Value.Status != Deleted && again.Value.Name == name {
		return nil
	}
	_, err = s.change(ctx, worldChannel(c.Value.World), &state.Update{
		Ops: []state.Op{kit.Delete(nameField(name))}, If: []state.Condition{kit.Same(nameField(name), n.ID)},
	})
	return err
}

// settleScene finishes a change of a name that stopped after any step. For a deleted scene, it
// frees the name and removes the places. Several may run at the same time.
func (s *Scenes) settleScene(ctx context.Context, id string) error {
	_, err := s.scenes.Edit(ctx, id, func(c *storedScene) error {
		switch {
		case c.pending.Exists():
			return s.settleName(ctx, c)
		case c.Value.Status != Deleted:
			return nil
		}
		if err := s.freeName(ctx, c, c.Value.Name); err != nil {
			return err
		}
		return s.vacate(ctx, id)
	})
	return err
}

// settleName finishes a change of a name, or takes it back. After it has taken it back, the
// error is kit.ErrChanged.
func (s *Scenes) settleName(ctx context.Context, c *storedScene) error {
	n, err := s.readName(ctx, c.Value.World, c.Value.Name)
	if err != nil {
		return err
	}
	if !n.Exists() {
		if _, err = s.setName(ctx, &c.Value, c.key, true, kit.Same(nameField(c.Value.Name), 0)); err == nil {
			err = kit.ErrChanged // reads the record again, and then confirms the name
		}
		return err
	}
	if n.Value != c.key {
		return s.takeBack(ctx, c)
	}
	again, err := s.scenes.Get(ctx, c.key) // after the name
	if err != nil {
		return err
	}
	if again.ID != c.ID || again.pending.ID != c.pending.ID {
		return kit.ErrChanged
	}
	if n.leased {
		if _, err := s.setName(ctx, &c.Value, c.key, false, kit.Same(nameField(c.Value.Name), n.ID)); err != nil {
			return err
		}
	}
	return s.finishName(ctx, c)
}

// takeBack writes the name and the status that a scene had before.
func (s *Scenes) takeBack(ctx context.Context, c *storedScene) error {
	r := c.Value
	if r.Status = c.pending.Value.Status; c.pending.Value.Name != "" {
		r.Name = c.pending.Value.Name
	}
	_, err := s.change(ctx, sceneChannel(c.key), &state.Update{
		Ops: []state.Op{kit.Set(sceneField, r), kit.Delete(pendingField)},
		If:  []state.Condition{kit.Same(sceneField, c.ID), kit.Same(pendingField, c.pending.ID)},
	})
	if err == nil {
		err = kit.ErrChanged
	}
	return err
}

// vacate removes all places of a deleted scene, and takes their avatars out of it.
func (s *Scenes) vacate(ctx context.Context, scene string) error {
	places, err := readPlaces(ctx, s.store, scene)
	if err != nil {
		return err
	}
	for _, p := range places {
		a, err := s.settle(ctx, p.avatar)
		if kit.HasCode(err, wire.NotFound) {
			a, err = &storedAvatar{key: p.avatar}, nil
		}
		if err == nil {
			if a.Exists() {
				s.avatars.Show(ctx, a.card())
			}
			err = s.leave(ctx, a, scene, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Find returns the scene with a name.
func (s *Scenes) Find(ctx context.Context, world, name string) (*SceneView, error) {
	if err := checkID("world", world); err != nil {
		return nil, err
	}
	n, err := s.readName(ctx, world, name)
	if err != nil {
		return nil, err
	}
	if n.Exists() {
		v, err := s.GetScene(ctx, n.Value)
		if err == nil && v.Name == name && v.World == world && v.Status != Deleted {
			return v, nil
		}
		if err != nil && !kit.HasCode(err, wire.NotFound) {
			return nil, err
		}
	}
	return nil, wire.Errorf(wire.NotFound, "world %s has no scene %q", world, name)
}
