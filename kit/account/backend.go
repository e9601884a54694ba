package account

import (
	"context"
	"slices"

	"switchboard/internal/wire"
)

// Lock locks an account: all logins and connections end, and no login succeeds. It does nothing to
// a locked one; a deleted one is a conflict.
func (a *Accounts) Lock(ctx context.Context, id string) (Account, error) {
	return a.setState(ctx, id, Locked, WasLocked, Open)
}

// Unlock makes a locked account open.
func (a *Accounts) Unlock(ctx context.Context, id string) (Account, error) {
	return a.setState(ctx, id, Open, WasUnlocked, Locked)
}

// Delete marks an account as deleted: all logins and connections end, and no login succeeds. Its
// name stays taken, so that Restore can bring it back.
func (a *Accounts) Delete(ctx context.Context, id string) (Account, error) {
	return a.setState(ctx, id, Deleted, WasDeleted, Open, Locked)
}

// Restore makes an account that was marked as deleted open.
func (a *Accounts) Restore(ctx context.Context, id string) (Account, error) {
	return a.setState(ctx, id, Open, WasRestored, Deleted)
}

// setState changes the state of an account if it is one of from. If the state is there already,
// nothing changes.
func (a *Accounts) setState(ctx context.Context, id string, to State, event EventType, from ...State) (Account, error) {
	e, err := a.edit(ctx, id, func(e *edit) error {
		switch {
		case e.next.State == to:
			return errNothing
		case !slices.Contains(from, e.next.State):
			return &wire.DetailedError{
				Err: wire.Errorf(wire.Conflict, "the account is %s", e.next.State), Data: e.snapshot.account(),
			}
		}
		e.next.State = to
		if to != Open {
			e.endLogins()
		}
		e.log(Event{Type: event})
		return nil
	})
	if err == errNothing {
		if to != Open { // an earlier call may have failed after its change
			if err := a.host.Disconnect(ctx, id); err != nil {
				return Account{}, err
			}
		}
		return a.Get(ctx, id)
	}
	return shown(e, err)
}

// SetPassword replaces the password of an account. All logins and connections end.
func (a *Accounts) SetPassword(ctx context.Context, id, password string) (Account, error) {
	c, err := a.passwords.create(ctx, password)
	if err != nil {
		return Account{}, err
	}
	return shown(a.edit(ctx, id, func(e *edit) error {
		if e.next.Name == "" {
			return wire.Errorf(wire.Conflict, "the account is a guest's: it has no name")
		}
		e.set(scramField, c, 0)
		e.endLogins()
		e.log(Event{Type: NewPassword})
		return nil
	}))
}
