package account

import (
	"context"
	"net/http"
	"strconv"
	"time"
)

// Session is a login. It is safe for concurrent use.
type Session struct {
	accounts *Accounts
	// lock guards the fields below, also during a call: a renewal token is valid for one renewal, so
	// two renewals must not run at once.
	lock   chan struct{}
	answer answer
	fresh  time.Time // until when the token is used
	given  bool      // Token has returned the token
}

// answer is the answer to a login or a renewal.
type answer struct {
	Account   Account `json:"account"`
	Token     string  `json:"token"`
	ExpiresIn int     `json:"expires_in"` // seconds
	Renewal   string  `json:"renewal"`
	Message   string  `json:"message"`
}

// acquire takes the lock, until ctx ends.
func (s *Session) acquire(ctx context.Context) error {
	select {
	case s.lock <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *Session) release() { <-s.lock }

// fetch makes a call whose answer has new tokens. They count if verify accepts the message in the
// answer.
func (s *Session) fetch(ctx context.Context, path string, body any, verify func(message string) error) error {
	var next answer
	begun := time.Now()
	if err := s.accounts.call(ctx, http.MethodPost, path, "", body, &next); err != nil {
		return err
	}
	if err := verify(next.Message); err != nil {
		return err
	}
	life := time.Duration(next.ExpiresIn) * time.Second
	s.answer, s.fresh, s.given = next, begun.Add(life*3/4), false
	s.accounts.renewed(next.Renewal)
	return nil
}

// Account returns the account at the last login or renewal.
func (s *Session) Account() Account {
	s.lock <- struct{}{}
	defer s.release()
	return s.answer.Account
}

// Renewal returns the current renewal token, for Accounts.Resume.
func (s *Session) Renewal() string {
	s.lock <- struct{}{}
	defer s.release()
	return s.answer.Renewal
}

// Token returns a token for the broker: it is a client.Options.TokenSource. The token of the login
// is returned once, while it is fresh. After that each call renews the login, since the client asks
// for a token when the last one is no longer accepted.
func (s *Session) Token(ctx context.Context) (string, error) {
	if err := s.acquire(ctx); err != nil {
		return "", err
	}
	defer s.release()
	if s.given || time.Now().After(s.fresh) {
		if err := s.renewLocked(ctx); err != nil {
			return "", err
		}
	}
	s.given = true
	return s.answer.Token, nil
}

func (s *Session) renewLocked(ctx context.Context) error {
	return s.fetch(ctx, "/renew", map[string]string{"renewal": s.answer.Renewal}, func(string) error { return nil })
}

// Renew exchanges the renewal token for new tokens. After an error without an answer of the broker,
// the token may have been used: if the next renewal is refused, log in again.
func (s *Session) Renew(ctx context.Context) error {
	if err := s.acquire(ctx); err != nil {
		return err
	}
	defer s.release()
	return s.renewLocked(ctx)
}

// Logout ends the login and closes its connections; with everywhere, all logins of the account.
func (s *Session) Logout(ctx context.Context, everywhere bool) error {
	if err := s.acquire(ctx); err != nil {
		return err
	}
	defer s.release()
	body := map[string]any{"renewal": s.answer.Renewal, "everywhere": everywhere}
	return s.accounts.call(ctx, http.MethodPost, "/logout", "", body, &struct{}{})
}

// Rename changes the name of the account. A guest gets the name and the password. A version is the
// one that the account must have; the code of the error is otherwise client.Conflict.
func (s *Session) Rename(ctx context.Context, name, password string, version ...int64) error {
	return s.changeProved(ctx, http.MethodPatch, "/me", ifMatch(version), map[string]string{"name": name, "password": password})
}

// SetNickname changes the nickname. Others see it in presence after the next renewal. A version is
// as in Rename.
func (s *Session) SetNickname(ctx context.Context, nickname string, version ...int64) error {
	return s.change(ctx, http.MethodPatch, "/me", ifMatch(version), map[string]string{"nickname": nickname})
}

// ChangePassword replaces the password. All logins of the account end, also this one.
func (s *Session) ChangePassword(ctx context.Context, password, next string) error {
	return s.change(ctx, http.MethodPost, "/me/password", nil, map[string]string{"password": password, "new": next})
}

// Delete marks the account as deleted. All its logins end.
func (s *Session) Delete(ctx context.Context, password string) error {
	return s.changeProved(ctx, http.MethodPost, "/me/delete", nil, map[string]string{"password": password})
}

// changeProved is change for a call that needs the password. A guest has none, and shows its
// renewal token instead.
func (s *Session) changeProved(ctx context.Context, method, path string, condition http.Header, body map[string]string) error {
	return s.changeWith(ctx, method, path, condition, func() any {
		if s.answer.Account.Name == "" {
			body["renewal"] = s.answer.Renewal
		}
		return body
	})
}

// change makes a call with the token, whose answer is the account.
func (s *Session) change(ctx context.Context, method, path string, condition http.Header, body any) error {
	return s.changeWith(ctx, method, path, condition, func() any { return body })
}

// changeWith is change with a body that is made when the tokens are fresh.
func (s *Session) changeWith(ctx context.Context, method, path string, condition http.Header, body func() any) error {
	if err := s.acquire(ctx); err != nil {
		return err
	}
	defer s.release()
	if time.Now().After(s.fresh) {
		if err := s.renewLocked(ctx); err != nil {
			return err
		}
	}
	return s.accounts.callIf(ctx, condition, method, path, s.answer.Token, body(), &s.answer.Account)
}

// ifMatch returns the header that asks for a version, nil for none.
func ifMatch(version []int64) http.Header {
	if len(version) == 0 || version[0] == 0 {
		return nil
	}
	return http.Header{"If-Match": {strconv.Quote(strconv.FormatInt(version[0], 10))}}
}
