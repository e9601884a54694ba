package session

import (
	crand "crypto/rand"
	"errors"
	"strings"

	"switchboard/broker/hook"
	"switchboard/internal/payload"
	"switchboard/internal/wire"
	"switchboard/registry"
)

// ErrExpired is in the error chain of Access.Verify if the token was valid but has expired.
var ErrExpired = errors.New("session: the token ran out")

// checkConnect checks the fields of a connect message and returns the client's identity.
func (a *Access) checkConnect(req wire.Request) (Identity, error) {
	if req.Secret != "" {
		if err := wire.CheckSecret(req.Secret); err != nil {
			return Identity{}, err
		}
	}
	if req.Instance != "" {
		if err := wire.CheckName("instance", req.Instance); err != nil {
			return Identity{}, err
		}
	}
	if req.Attempt < 0 {
		return Identity{}, wire.Errorf(wire.BadRequest, "attempt: %d is below zero", req.Attempt)
	}
	return a.identify(req)
}

// identify returns the client's identity from its token. If the broker is open, it takes the user
// and the info from the message.
func (a *Access) identify(req wire.Request) (Identity, error) {
	if a.Verify != nil {
		switch {
		case req.Token != "":
			return a.Verify(req.Token)
		case !a.Anonymous || req.Type != wire.TypeConnect:
			return Identity{}, wire.Errorf(wire.Unauthorized, "token: missing")
		case req.User != "":
			return Identity{}, wire.Errorf(wire.Unauthorized, "token: missing; a client without a token has no user")
		}
		return Identity{}, nil
	}
	info, err := payload.CompactInfo(req.Info)
	if err != nil || req.User == "" {
		return Identity{Info: info}, err
	}
	return Identity{User: req.User, Info: info}, wire.CheckName("user", req.User)
}

// assignID gives the client its id and, if it has no user, the secret by which it gets that id
// again. It calls the connect hook if q is not nil. Without tokens the hook may name the user.
func (c *connector) assignID(j *connectJob, q *hook.Question) error {
	verified := j.identity
	if j.request.Client == "" {
		j.request.Client = verified.Client
	}
	if j.request.Client == "" {
		j.request.Client = randomClientPart()
	}
	part, err := clientPart(j.request.Client, verified.User)
	j.client = wire.ClientID(verified.User, part)
	hookMayNameUser := q != nil && c.opts.Access.Verify == nil
	if err != nil && hookMayNameUser && wire.CheckClientID(j.request.Client) == nil {
		j.client, err = j.request.Client, nil // perhaps it begins with the user that the hook will name
	}
	if err == nil && verified.Client != "" && part != verified.Client {
		err = wire.Errorf(wire.Forbidden, "client: the token is of client %s", verified.Client)
	}
	if err == nil && q != nil {
		q.Client = j.client
		if j.identity, err = c.opts.Hooks.askConnect(verified, &j.gone, q); err == nil {
			part, err = clientPart(j.request.Client, j.identity.User, verified.User)
			j.client = wire.ClientID(j.identity.User, part)
		}
	}
	if err == nil && j.identity.User == "" {
		secret := j.request.Secret
		if secret == "" {
			secret = crand.Text()
		}
		j.setSecret(secret)
	}
	return err
}

// randomClientPart returns the client part of an id for a client that gave none.
func randomClientPart() string { return "c-" + crand.Text()[:16] }

// clientPart returns the client part of the id that a client gave. That id may begin with the name
// of one of the users.
func clientPart(given string, users ...string) (string, error) {
	for _, user := range users {
		if part, found := strings.CutPrefix(given, user+"/"); found && user != "" {
			given = part
			break
		}
	}
	return given, wire.CheckClientPart(given)
}

// rejectionReason returns the reason for Notify.Rejected if the token was refused with err.
func rejectionReason(token string, err error) string {
	switch {
	case token == "":
		return RejectedMissing
	case errors.Is(err, ErrExpired):
		return RejectedExpired
	case errors.Is(err, registry.ErrRevoked):
		return RejectedRevoked
	}
	return RejectedBad
}
