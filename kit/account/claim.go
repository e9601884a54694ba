package account

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

const (
	// claimLease is how long an account may take to write its new name, on the store's clock.
	claimLease = 30 * time.Second
	// claimKeep is how long the channel of an account remains that was never registered.
	claimKeep = time.Hour
)

// holder is what $$id of a name says.
type holder struct {
	field         int64 // its id, 0 if the name is free
	*snapshot           // of the account in it; nil if the name is free
	owns, pending bool  // the account has the name, or may still get it
}

// holder reads the holder of a name. The order matters: the account is read after the name, and an
// account claims a name before it writes $$id. So if it neither has nor claims the name now, it
// gets it only after another change of $$id.
func (a *Accounts) holder(ctx context.Context, digest string) (h holder, err error) {
	fields, err := a.readFields(ctx, namePrefix+digest, idField)
	if err != nil || len(fields) == 0 {
		return h, err
	}
	var id string
	if err := json.Unmarshal(fields[0].Value, &id); err != nil {
		return h, fmt.Errorf("name %s: %w", digest, err)
	}
	h.field = fields[0].ID
	if h.snapshot, err = a.read(ctx, id); err != nil {
		return h, err
	}
	h.owns = h.exists() && named(h.record.value.Name).digest == digest
	h.pending = h.claim.id != 0 && h.claim.value == digest
	return h, nil
}

// owner returns the account that has a name. If there is none, it returns the snapshot of an
// account that does not exist, at the cost of an owner.
func (a *Accounts) owner(ctx context.Context, n name) (*snapshot, error) {
	h, err := a.holder(ctx, n.digest)
	if err != nil || h.owns {
		return h.snapshot, err
	}
	if h.snapshot == nil {
		if _, err := a.read(ctx, newID()); err != nil {
			return nil, err
		}
	}
	return &snapshot{}, nil
}

// claimName makes an account the holder of a name. It returns the id of the claim: the record may
// get the name only on the condition that $$claim still has this id.
func (a *Accounts) claimName(ctx context.Context, s *snapshot, n name) (claim int64, err error) {
	h, err := a.holder(ctx, n.digest)
	if err != nil {
		return 0, err
	}
	if h.field != 0 && h.id != s.id && (h.owns || h.pending) {
		return 0, taken()
	}
	if err := a.index.Schedule(ctx, sweepDelay, nameTask+n.digest); err != nil {
		return 0, fmt.Errorf("claim a name: %w", err)
	}
	claim, err = a.changeClaim(ctx, s, 0, setOp(claimField, n.digest, claimLease))
	if isConflict(err) {
		return 0, wire.Errorf(wire.Conflict, "the account is being renamed; try again later")
	}
	if err != nil {
		return 0, fmt.Errorf("claim a name: %w", err)
	}
	if err = a.changeHolder(ctx, n.digest, h.field, setOp(idField, s.id, 0)); isConflict(err) {
		// The next rename of the account need not wait until the claim ends.
		_, err = a.changeClaim(ctx, s, claim, state.Op{Field: claimField, Kind: state.Delete})
		return 0, cmp.Or(err, taken())
	}
	return claim, err
}

// changeClaim changes the claim of an account if $$claim still has the id field; 0 means that it is
// absent.
func (a *Accounts) changeClaim(ctx context.Context, s *snapshot, field int64, op state.Op) (int64, error) {
	u := newUpdate()
	u.Ops, u.If = append(u.Ops, op), append(u.If, expect(claimField, field))
	if u.Keep = claimKeep; s.exists() {
		u.Keep = a.life(&s.record.value)
	}
	done, err := a.store.Change(ctx, accountPrefix+s.id, u, false)
	return done.ID, err
}

func taken() error { return wire.Errorf(wire.Conflict, "the name is taken") }

// sweepName removes the holder of a name if it neither has nor claims the name. It reports whether
// to look again later.
func (a *Accounts) sweepName(ctx context.Context, digest string) (again bool, err error) {
	h, err := a.holder(ctx, digest)
	if err != nil || h.field == 0 || h.owns || h.pending {
		return h.pending && !h.owns, err
	}
	err = a.changeHolder(ctx, digest, h.field, state.Op{Field: idField, Kind: state.Delete})
	if isConflict(err) {
		return true, nil
	}
	return false, err
}

// changeHolder changes $$id of a name if it still has the id field; 0 means that it is absent.
func (a *Accounts) changeHolder(ctx context.Context, digest string, field int64, op state.Op) error {
	u := newUpdate()
	u.Ops, u.If = append(u.Ops, op), append(u.If, expect(idField, field))
	_, err := a.store.Change(ctx, namePrefix+digest, u, a.opts.Durable)
	return err
}
