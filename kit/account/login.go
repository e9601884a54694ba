package account

import (
	"context"
	"unicode"
	"unicode/utf8"

	"switchboard/internal/wire"
	"switchboard/kit"
)

// Registration is a new account.
type Registration struct {
	// Name and Password log in to the account. Both are empty for a guest.
	Name     string `json:"name"`
	Password string `json:"password"`
	Nickname string `json:"nickname"`
	// Client is the part of the client id that the tokens set. Zero means that the client chooses
	// it.
	Client string `json:"client"`
}

// Register makes an account and logs in to it. The error is conflict if the name is taken.
func (a *Accounts) Register(ctx context.Context, r Registration, from Caller) (_ Session, err error) {
	defer a.results.Count("register", &err)
	if err := checkProfile(r.Nickname, r.Client); err != nil {
		return Session{}, err
	}
	s := &snapshot{id: newID(), grants: make([]kit.Record[grant], MaxLogins)}
	e := begin(s)
	if r.Name == "" && r.Password == "" {
		if !a.opts.Guests {
			return Session{}, wire.Errorf(wire.BadRequest, "name: it is empty, and this broker has no guests")
		}
		if err := a.rates.registration(from); err != nil {
			return Session{}, err
		}
	} else if err := a.prepare(ctx, e, r, from); err != nil {
		return Session{}, err
	}
	t := now()
	e.next.Version, e.next.State, e.next.Nickname, e.next.Created = formatVersion, Open, r.Nickname, t
	e.next.Login = &Login{t, from.text()}
	e.log(Event{Type: Registered, Address: from.text()})
	login, renewal := a.grant(e, r.Client)
	if err := a.commit(ctx, e); kit.HasCode(err, wire.Conflict) {
		return Session{}, errSlow()
	} else if err != nil {
		return Session{}, err
	}
	return a.session(e.account(), login, renewal)
}

// prepare claims the name of a registration for the account of the edit, and adds name and password
// to the edit.
func (a *Accounts) prepare(ctx context.Context, e *edit, r Registration, from Caller) error {
	n, err := parseName(r.Name)
	if err != nil {
		return err
	}
	if err := a.rates.registration(from); err != nil {
		return err
	}
	c, err := a.passwords.create(ctx, r.Password, from.network())
	if err != nil {
		return err
	}
	claim, err := a.claimName(ctx, e.snapshot, n)
	if err != nil {
		return err
	}
	e.takeName(n, claim)
	e.set(scramField, c, 0)
	return nil
}

// takeName gives the record a name that was claimed.
func (e *edit) takeName(n name, claim int64) {
	e.next.Name = n.text
	e.expect(claimField, claim)
	e.remove(claimField)
}

// errSlow is the error if another change of the account, or 30 seconds, came between a claim and
// the record.
func errSlow() error {
	return wire.Errorf(wire.Conflict, "the name was claimed, but the account has changed or the call took too long; try again")
}

// Credentials are a name and a password, or the answer to a challenge.
type Credentials struct {
	Name     string `json:"name"`
	Password string `json:"password"`
	// Challenge is that of Accounts.Challenge, and Message the second message of the client.
	Challenge string `json:"challenge"`
	Message   string `json:"message"`
	// Client is the part of the client id that the tokens set. Zero means that the client chooses
	// it.
	Client string `json:"client"`
}

// Login logs in. The error is unauthorized if the name is not known or the password is wrong, and
// locked if the account is locked.
func (a *Accounts) Login(ctx context.Context, c Credentials, from Caller) (_ Session, err error) {
	defer a.results.Count("login", &err)
	if err := checkProfile("", c.Client); err != nil {
		return Session{}, err
	}
	p, err := a.newProof(c)
	if err != nil {
		return Session{}, err
	}
	if err := a.rates.attempt(from, p.name.digest); err != nil {
		return Session{}, err
	}
	return kit.Retry(ctx, "the account", func() (Session, error) {
		s, err := a.owner(ctx, p.name)
		if err != nil {
			return Session{}, err
		}
		message, err := p.check(ctx, s, from)
		if err != nil {
			return Session{}, err
		}
		if err := s.checkOpen(); err != nil {
			return Session{}, err
		}
		e := begin(s)
		p.spend(e)
		e.next.Login = &Login{now(), from.text()}
		e.log(Event{Type: LoggedIn, Address: from.text()})
		login, renewal := a.grant(e, c.Client)
		err = a.commit(ctx, e)
		if p.spent(err) {
			return Session{}, wrong()
		}
		if err != nil {
			return Session{}, kit.IfChanged(err)
		}
		session, err := a.session(e.account(), login, renewal)
		session.Message = message
		return session, err
	})
}

func wrong() error {
	return wire.Errorf(wire.Unauthorized, "the name is unknown or the password is wrong")
}

// checkOpen returns an error unless the account is open. A deleted account looks like an unknown
// one.
func (s *snapshot) checkOpen() error {
	switch s.record.Value.State {
	case Open:
		return nil
	case Locked:
		return wire.Errorf(wire.Locked, "the account is locked")
	}
	return wrong()
}

// checkProfile checks what a client says about itself.
func checkProfile(nickname, client string) error {
	if len(nickname) > MaxNickname || !utf8.ValidString(nickname) {
		return wire.Errorf(wire.BadRequest, "nickname: it must have at most %d bytes of UTF-8", MaxNickname)
	}
	for _, r := range nickname {
		if unicode.IsControl(r) {
			return wire.Errorf(wire.BadRequest, "nickname: it has a control character")
		}
	}
	if client != "" {
		return wire.CheckClientPart(client)
	}
	return nil
}
