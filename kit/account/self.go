package account

import (
	"context"
	"errors"

	"switchboard/internal/wire"
	"switchboard/kit"
)

// Rename gives an account another name. The error is conflict if the name is taken, if the account
// is renamed by two callers at once, or if the condition is not met.
func (a *Accounts) Rename(ctx context.Context, id, text string, from Caller, m kit.Match) (Account, error) {
	return a.rename(ctx, id, text, from, func(now *snapshot) error { return now.checkVersion(m) })
}

// rename is Rename if check returns no error for the account before it, and as it is when the name
// changes.
func (a *Accounts) rename(ctx context.Context, id, text string, from Caller, check func(*snapshot) error) (Account, error) {
	n, err := parseName(text)
	if err != nil {
		return Account{}, err
	}
	s, err := a.documents.Get(ctx, id)
	if err == nil {
		err = check(s)
	}
	if err != nil {
		return Account{}, err
	}
	former := s.record.Value.Name
	switch {
	case former == n.text:
		return s.account(), nil
	case s.scram.ID == 0:
		return Account{}, wire.Errorf(wire.BadRequest, "a guest gets a name and a password together")
	}
	e, err := a.takeName(ctx, s, n, func(e *edit) error {
		if e.record.Value.Name != former {
			return errSlow()
		}
		if err := check(e.snapshot); err != nil {
			return err
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
	return e.account(), nil
}

// RenameSelf is Rename on behalf of the user, if the password is right. It is Upgrade for a guest,
// whose password it is then.
func (a *Accounts) RenameSelf(ctx context.Context, id, text, password string, from Caller, m kit.Match) (Account, error) {
	s, err := a.checkPassword(ctx, id, password, from)
	switch {
	case err != nil:
		return Account{}, err
	case s.scram.ID == 0:
		return a.Upgrade(ctx, id, text, password, from, m)
	}
	return a.rename(ctx, id, text, from, func(now *snapshot) error {
		if err := now.checkSince(s, from); err != nil {
			return err
		}
		return now.checkVersion(m)
	})
}

// takeName claims a name for an account that exists, and makes an edit that gives it to the record.
func (a *Accounts) takeName(ctx context.Context, s *snapshot, n name, change func(*edit) error) (*edit, error) {
	if former := s.record.Value.Name; former != "" {
		if err := a.index.Schedule(ctx, sweepDelay, nameTask+named(former).digest); err != nil {
			return nil, err
		}
	}
	claim, err := a.claimName(ctx, s, n)
	if err != nil {
		return nil, err
	}
	e, err := a.edit(ctx, s.id, func(e *edit) error {
		if e.claim.ID != claim {
			return errSlow()
		}
		e.takeName(n, claim)
		return change(e)
	})
	if _, refused := errors.AsType[*wire.Error](err); refused {
		// The next rename of the account need not wait until the claim ends. A conflict means that
		// another one has the claim.
		if _, e := a.changeClaim(ctx, s, claim, kit.Delete(claimField)); e != nil && !kit.HasCode(e, wire.Conflict) {
			a.log.Warn().Err(e).Msg("accounts: a claim that is not used ends later")
		}
	}
	return e, err
}

// Upgrade gives a guest a name and a password. The error is bad_request if the account has them.
func (a *Accounts) Upgrade(ctx context.Context, id, text, password string, from Caller, m kit.Match) (Account, error) {
	n, err := parseName(text)
	if err == nil {
		err = a.passwords.checkNew(password)
	}
	if err != nil {
		return Account{}, err
	}
	s, err := a.read(ctx, id)
	if err == nil {
		err = s.checkUpgrade(from, m)
	}
	var c *credentials
	if err == nil {
		c, err = a.passwords.create(ctx, password, from.network(), id)
	}
	var e *edit
	if err == nil {
		e, err = a.takeName(ctx, s, n, func(e *edit) error {
			if err := e.checkUpgrade(from, m); err != nil {
				return err
			}
			e.set(scramField, c, 0)
			e.log(Event{Type: Renamed, Address: from.text()})
			return e.expectGuest(from)
		})
	}
	if err != nil {
		return Account{}, a.guestRefused(ctx, err, from)
	}
	return e.account(), nil
}

// checkUpgrade checks that the account is an open one of a guest, that the guest calls, and that
// the account meets the condition.
func (s *snapshot) checkUpgrade(from Caller, m kit.Match) error {
	switch {
	case !s.Exists():
		return notFound(s.id)
	case s.scram.ID != 0 || s.record.Value.Name != "":
		return wire.Errorf(wire.BadRequest, "the account has a name and a password already")
	}
	if err := s.checkUser(from); err != nil {
		return err
	}
	if _, err := s.checkGuest(from); err != nil {
		return err
	}
	return s.checkVersion(m)
}

// guestRefused returns the error for a guest. If its renewal token was used before, the login ends,
// as with a second renewal.
func (a *Accounts) guestRefused(ctx context.Context, err error, from Caller) error {
	if err != errReused {
		return err
	}
	t, err := parseRenewal(from.Renewal)
	if err != nil {
		return err
	}
	return a.endReused(ctx, t, from)
}

// SetNickname changes the nickname of an account. Tokens have it after the next renewal. The error
// is conflict if the condition is not met.
func (a *Accounts) SetNickname(ctx context.Context, id, nickname string, from Caller, m kit.Match) (Account, error) {
	err := checkProfile(nickname, "")
	if err == nil {
		err = a.rates.edited(id)
	}
	if err != nil {
		return Account{}, err
	}
	return shown(a.edit(ctx, id, func(e *edit) error {
		if err := e.checkUser(from); err != nil {
			return err
		}
		e.next.Nickname = nickname
		e.log(Event{Type: NewNickname, Address: from.text()})
		return e.checkVersion(m)
	}))
}

// ChangePassword replaces the password of an account, on behalf of its user. All logins and
// connections end.
func (a *Accounts) ChangePassword(ctx context.Context, id, password, next string, from Caller) (Account, error) {
	if err := a.passwords.checkNew(next); err != nil {
		return Account{}, err
	}
	s, err := a.checkPassword(ctx, id, password, from)
	if err == nil && s.scram.ID == 0 {
		err = wire.Errorf(wire.BadRequest, "a guest gets a name and a password together")
	}
	var c *credentials
	if err == nil { // only now: this takes a processor
		c, err = a.passwords.create(ctx, next, from.network(), id)
	}
	if err != nil {
		return Account{}, err
	}
	return a.withPassword(ctx, s, from, func(e *edit) error {
		e.set(scramField, c, 0)
		e.endLogins()
		e.log(Event{Type: NewPassword, Address: from.text()})
		return nil
	})
}

// DeleteSelf marks an account as deleted, on behalf of its user.
func (a *Accounts) DeleteSelf(ctx context.Context, id, password string, from Caller) (Account, error) {
	s, err := a.checkPassword(ctx, id, password, from)
	if err != nil {
		return Account{}, err
	}
	done, err := a.withPassword(ctx, s, from, func(e *edit) error {
		if err := e.expectGuest(from); err != nil {
			return err
		}
		e.next.State = Deleted
		e.endLogins()
		e.log(Event{Type: WasDeleted, Address: from.text()})
		return nil
	})
	return done, a.guestRefused(ctx, err, from)
}

// checkPassword reads an account that is open and whose login has not ended, if the password is
// right. A guest has none, see checkGuest.
func (a *Accounts) checkPassword(ctx context.Context, id, password string, from Caller) (*snapshot, error) {
	if err := a.rates.attempt(from, id); err != nil {
		return nil, err
	}
	s, err := a.read(ctx, id)
	if err == nil {
		err = s.checkUser(from)
	}
	if err == nil && s.scram.ID != 0 {
		var ok bool
		if ok, err = a.passwords.verify(ctx, password, &s.scram.Value, from.network(), id); err == nil && !ok {
			err = wire.Errorf(wire.Unauthorized, "the password is wrong")
		}
	}
	return s, err
}

// withPassword changes an account whose password has been verified in s.
func (a *Accounts) withPassword(ctx context.Context, s *snapshot, from Caller, change func(*edit) error) (Account, error) {
	return shown(a.edit(ctx, s.id, func(e *edit) error {
		if err := e.checkSince(s, from); err != nil {
			return err
		}
		return change(e)
	}))
}

// checkSince checks again what checkPassword has checked in an earlier snapshot.
func (s *snapshot) checkSince(before *snapshot, from Caller) error {
	if s.scram.ID != before.scram.ID {
		return wire.Errorf(wire.Conflict, "the password has changed meanwhile")
	}
	return s.checkUser(from)
}

// checkUser checks that the account is open, and that the login of the caller has not ended: its
// token is still valid for a while.
func (s *snapshot) checkUser(from Caller) error {
	if err := s.checkOpen(); err != nil {
		return err
	}
	return s.checkLogin(from)
}
