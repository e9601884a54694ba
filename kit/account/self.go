package account

import (
	"context"
	"errors"

	"switchboard/internal/state"
	"switchboard/internal/wire"
)

// Rename gives an account another name. The error is conflict if the name is taken, or if the
// account is renamed by two callers at once.
func (a *Accounts) Rename(ctx context.Context, id, text string, from Caller) (Account, error) {
	n, err := parseName(text)
	if err == nil {
		err = checkID(id)
	}
	if err != nil {
		return Account{}, err
	}
	s, err := a.read(ctx, id)
	if err != nil {
		return Account{}, err
	}
	former := s.record.value.Name
	switch {
	case !s.exists():
		return Account{}, notFound(id)
	case former == n.text:
		return s.record.value.account(id), nil
	case s.scram.id == 0:
		return Account{}, wire.Errorf(wire.BadRequest, "a guest gets a name and a password together")
	}
	e, err := a.takeName(ctx, s, n, func(e *edit) error {
		if e.record.value.Name != former {
			return errSlow()
		}
		e.log(Event{Type: Renamed, Name: former, Address: from.text()})
		return nil
	})
	if err != nil {
		return Account{}, err
	}
	if _, err := a.sweepName(ctx, named(former).digest); err != nil {
		a.log.Warn().Err(err).Msg("accounts: a former name becomes free later")
	}
	return e.next.account(id), nil
}

// RenameSelf is Rename on behalf of the user, if the password is right. It is Upgrade for a guest.
func (a *Accounts) RenameSelf(ctx context.Context, id, text, password string, from Caller) (Account, error) {
	s, err := a.checkPassword(ctx, id, password, from)
	switch {
	case err != nil:
		return Account{}, err
	case s.scram.id == 0:
		return a.Upgrade(ctx, id, text, password, from)
	}
	return a.Rename(ctx, id, text, from)
}

// takeName claims a name for an account that exists, and makes an edit that gives it to the record.
func (a *Accounts) takeName(ctx context.Context, s *snapshot, n name, change func(*edit) error) (*edit, error) {
	if former := s.record.value.Name; former != "" {
		if err := a.index.Schedule(ctx, sweepDelay, nameTask+named(former).digest); err != nil {
			return nil, err
		}
	}
	claim, err := a.claimName(ctx, s, n)
	if err != nil {
		return nil, err
	}
	e, err := a.edit(ctx, s.id, func(e *edit) error {
		if e.claim.id != claim {
			return errSlow()
		}
		e.takeName(n, claim)
		return change(e)
	})
	if _, refused := errors.AsType[*wire.Error](err); refused {
		// The next rename of the account need not wait until the claim ends. A conflict means that
		// another one has the claim.
		if _, e := a.changeClaim(ctx, s, claim, state.Op{Field: claimField, Kind: state.Delete}); e != nil && !isConflict(e) {
			a.log.Warn().Err(e).Msg("accounts: a claim that is not used ends later")
		}
	}
	return e, err
}

// Upgrade gives a guest a name and a password.
func (a *Accounts) Upgrade(ctx context.Context, id, text, password string, from Caller) (Account, error) {
	n, err := parseName(text)
	if err != nil {
		return Account{}, err
	}
	c, err := a.passwords.create(ctx, password)
	if err != nil {
		return Account{}, err
	}
	s, err := a.read(ctx, id)
	if err != nil {
		return Account{}, err
	}
	guest := func(s *snapshot) error {
		if s.scram.id != 0 || s.record.value.Name != "" {
			return wire.Errorf(wire.BadRequest, "the account has a name and a password already")
		}
		return nil
	}
	if !s.exists() {
		return Account{}, notFound(id)
	}
	if err := guest(s); err != nil {
		return Account{}, err
	}
	e, err := a.takeName(ctx, s, n, func(e *edit) error {
		e.set(scramField, c, 0)
		e.log(Event{Type: Renamed, Address: from.text()})
		return guest(e.snapshot)
	})
	if err != nil {
		return Account{}, err
	}
	return e.next.account(id), nil
}

// SetNickname changes the nickname of an account. Tokens have it after the next renewal.
func (a *Accounts) SetNickname(ctx context.Context, id, nickname string, from Caller) (Account, error) {
	if err := checkProfile(nickname, ""); err != nil {
		return Account{}, err
	}
	return a.change(ctx, id, func(e *edit) error {
		e.next.Nickname = nickname
		e.log(Event{Type: NewNickname, Address: from.text()})
		return nil
	})
}

// ChangePassword replaces the password of an account, on behalf of its user. All logins and
// connections end.
func (a *Accounts) ChangePassword(ctx context.Context, id, password, next string, from Caller) (Account, error) {
	c, err := a.passwords.create(ctx, next)
	if err != nil {
		return Account{}, err
	}
	return a.withPassword(ctx, id, password, from, func(e *edit) error {
		if e.next.Name == "" {
			return wire.Errorf(wire.BadRequest, "a guest gets a name and a password together")
		}
		e.set(scramField, c, 0)
		e.endLogins()
		e.log(Event{Type: NewPassword, Address: from.text()})
		return nil
	})
}

// DeleteSelf marks an account as deleted, on behalf of its user. Guests have no password.
func (a *Accounts) DeleteSelf(ctx context.Context, id, password string, from Caller) (Account, error) {
	return a.withPassword(ctx, id, password, from, func(e *edit) error {
		e.next.State = Deleted
		e.endLogins()
		e.log(Event{Type: WasDeleted, Address: from.text()})
		return nil
	})
}

// checkPassword reads an account that is open, if the password is right. A guest has none.
func (a *Accounts) checkPassword(ctx context.Context, id, password string, from Caller) (*snapshot, error) {
	if err := a.rates.attempt(from, id); err != nil {
		return nil, err
	}
	s, err := a.read(ctx, id)
	if err == nil {
		err = s.checkOpen()
	}
	if err == nil && s.scram.id != 0 {
		var ok bool
		if ok, err = a.passwords.verify(ctx, password, &s.scram.value); err == nil && !ok {
			err = wire.Errorf(wire.Unauthorized, "the password is wrong")
		}
	}
	return s, err
}

// withPassword changes an account if the password is right.
func (a *Accounts) withPassword(ctx context.Context, id, password string, from Caller, change func(*edit) error) (Account, error) {
	s, err := a.checkPassword(ctx, id, password, from)
	if err != nil {
		return Account{}, err
	}
	return a.change(ctx, id, func(e *edit) error {
		if e.scram.id != s.scram.id {
			return wire.Errorf(wire.Conflict, "the password has changed meanwhile")
		}
		return change(e)
	})
}

// change makes an edit and returns the account after it. It is refused if the account is not open:
// a token may be valid for a while after the account was locked.
func (a *Accounts) change(ctx context.Context, id string, change func(*edit) error) (Account, error) {
	e, err := a.edit(ctx, id, func(e *edit) error {
		if err := e.checkOpen(); err != nil {
			return err
		}
		return change(e)
	})
	if err != nil {
		return Account{}, err
	}
	return e.next.account(id), nil
}
