package scene

import (
	"context"
	"errors"

	"switchboard/internal/state"
	"switchboard/internal/wire"
	"switchboard/kit"
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

// storedName is the field of a name. A nil *storedName is none.
type storedName struct {
	stored[string] // the id of the scene
	leased         bool
}

func (s *Scenes) readName(ctx context.Context, world, name string) (*storedName, error) {
	fields, err := s.host.ReadState(ctx, worldChannel(world), nameField(name))
	if err != nil {
		return nil, inChannel("read", worldChannel(world), err)
	}
	f := fields[nameField(name)]
	v, err := decode[string](f)
	if v == nil || err != nil {
		return nil, err
	}
	return &storedName{*v, f.Lease != 0}, nil
}

// setName writes the field of a name, with a lease or without.
func (s *Scenes) setName(ctx context.Context, r *sceneRecord, scene string, lease bool, only state.Condition) (int64, error) {
	op := set(nameField(r.Name), scene)
	if lease {
		op.TTL = s.opts.Lease
	}
	return s.change(ctx, worldChannel(r.World), &state.Update{Ops: []state.Op{op}, If: []state.Condition{only}})
}

// claim claims the name of a record, and returns the id of the claim.
func (s *Scenes) claim(ctx context.Context, r *sceneRecord, scene string) (int64, error) {
	return kit.Retry(ctx, "world "+r.World, func() (int64, error) {
		n, err := s.readName(ctx, r.World, r.Name)
		only := state.Condition{Field: nameField(r.Name), Kind: state.IsAbsent}
		switch {
		case err != nil:
			return 0, err
		case n != nil && n.value != scene:
			return 0, nameTaken(r, n.value)
		case n != nil: // of an earlier try
			only = version(nameField(r.Name), n.id)
		}
		return s.setName(ctx, r, scene, true, only)
	})
}

func nameTaken(r *sceneRecord, by string) error {
	return &wire.DetailedError{
		Err: wire.Errorf(wire.Conflict, "world %s has a scene %q", r.World, r.Name), Data: map[string]string{"scene": by},
	}
}

// writeNamed writes a record with a new name, and takes the name. before is the pending value.
func (s *Scenes) writeNamed(ctx context.Context, c *storedScene, r sceneRecord, before pending) error {
	if err := s.opts.Scenes.Schedule(ctx, s.opts.Delay, c.key); err != nil {
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
	only := state.Condition{Field: sceneField, Kind: state.IsAbsent}
	if c.stored != nil {
		only = version(sceneField, c.id)
	}
	id, err := s.change(writeCtx, sceneChannel(c.key), &state.Update{
		Ops: []state.Op{set(sceneField, r), set(pendingField, before)},
		If:  []state.Condition{only, {Field: pendingField, Kind: state.IsAbsent}},
	})
	if err == nil {
		err = s.fault("scene")
	}
	if err != nil {
		return err
	}
	c.stored, c.pending = &stored[sceneRecord]{r, id}, &stored[pending]{before, id}
	if _, err = s.setName(ctx, &r, c.key, false, version(nameField(r.Name), claimed)); err == nil {
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
	again, err := s.readScene(ctx, c.key)
	if err != nil {
		return err
	}
	if again.value.Name != want.Name || again.value.Status == Deleted {
		return conflict(again.show(0), "scene %s has been changed by others meanwhile", c.key)
	}
	*c = *again
	return nil
}

// finishName frees the name that a scene had before, and deletes $$pending.
func (s *Scenes) finishName(ctx context.Context, c *storedScene) error {
	if before := c.pending.value.Name; before != "" && before != c.value.Name {
		if err := s.freeName(ctx, c, before); err != nil {
			return err
		}
	}
	_, err := s.change(ctx, sceneChannel(c.key), &state.Update{
		Ops: []state.Op{remove(pendingField)}, If: []state.Condition{version(pendingField, c.pending.id)},
	})
	if err == nil {
		c.pending = nil
	}
	return err
}

// freeName frees a name if the scene has it in the world, and if its record does not.
func (s *Scenes) freeName(ctx context.Context, c *storedScene, name string) error {
	n, err := s.readName(ctx, c.value.World, name)
	if err != nil || n == nil || n.value != c.key {
		return err
	}
	again, err := s.readScene(ctx, c.key) // after the name
	if err != nil {
		return err
	}
	if again.value.Status != Deleted && again.value.Name == name {
		return nil
	}
	_, err = s.change(ctx, worldChannel(c.value.World), &state.Update{
		Ops: []state.Op{remove(nameField(name))}, If: []state.Condition{version(nameField(name), n.id)},
	})
	return err
}

// settleScene finishes a change of a name that stopped after any step. For a deleted scene, it
// frees the name and removes the places. Several may run at the same time.
func (s *Scenes) settleScene(ctx context.Context, id string) error {
	_, err := kit.Retry(ctx, "scene "+id, func() (struct{}, error) {
		c, err := s.readScene(ctx, id)
		switch {
		case err != nil:
		case c.pending != nil:
			err = s.settleName(ctx, c)
		case c.value.Status == Deleted:
			if err = s.freeName(ctx, c, c.value.Name); err == nil {
				err = s.vacate(ctx, id)
			}
		}
		return struct{}{}, err
	})
	return err
}

// settleName finishes a change of a name, or takes it back. After it has taken it back, the
// error is kit.ErrChanged.
func (s *Scenes) settleName(ctx context.Context, c *storedScene) error {
	n, err := s.readName(ctx, c.value.World, c.value.Name)
	if err != nil {
		return err
	}
	if n == nil {
		only := state.Condition{Field: nameField(c.value.Name), Kind: state.IsAbsent}
		if _, err = s.setName(ctx, &c.value, c.key, true, only); err == nil {
			err = kit.ErrChanged // reads the record again, and then confirms the name
		}
		return err
	}
	if n.value != c.key {
		return s.takeBack(ctx, c)
	}
	again, err := s.readScene(ctx, c.key) // after the name
	if err != nil {
		return err
	}
	if again.id != c.id || again.pending == nil || again.pending.id != c.pending.id {
		return kit.ErrChanged
	}
	if n.leased {
		if _, err := s.setName(ctx, &c.value, c.key, false, version(nameField(c.value.Name), n.id)); err != nil {
			return err
		}
	}
	return s.finishName(ctx, c)
}

// takeBack writes the name and the status that a scene had before.
func (s *Scenes) takeBack(ctx context.Context, c *storedScene) error {
	r := c.value
	if r.Status = c.pending.value.Status; c.pending.value.Name != "" {
		r.Name = c.pending.value.Name
	}
	_, err := s.change(ctx, sceneChannel(c.key), &state.Update{
		Ops: []state.Op{set(sceneField, r), remove(pendingField)},
		If:  []state.Condition{version(sceneField, c.id), version(pendingField, c.pending.id)},
	})
	if err == nil {
		err = kit.ErrChanged
	}
	return err
}

// vacate removes all places of a deleted scene, and takes their avatars out of it.
func (s *Scenes) vacate(ctx context.Context, scene string) error {
	places, err := s.readPlaces(ctx, scene)
	if err != nil {
		return err
	}
	for _, p := range places {
		a, err := s.settle(ctx, p.avatar)
		if isNotFound(err) {
			a, err = &storedAvatar{key: p.avatar}, nil
		}
		if err == nil && a.stored != nil {
			_, err = s.list(ctx, a)
		}
		if err == nil {
			err = s.leave(ctx, a, scene, 0)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// isNotFound reports whether err says that there is no such record.
func isNotFound(err error) bool {
	e, ok := errors.AsType[*wire.Error](err)
	return ok && e.Code == wire.NotFound
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
	if n != nil {
		v, err := s.GetScene(ctx, n.value)
		if err == nil && v.Name == name && v.World == world && v.Status != Deleted {
			return v, nil
		}
		if err != nil && !isNotFound(err) {
			return nil, err
		}
	}
	return nil, wire.Errorf(wire.NotFound, "world %s has no scene %q", world, name)
}
