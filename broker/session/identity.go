package session

import (
	"cmp"
	crand "crypto/rand"
	"strings"

	"switchboard/broker/hook"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// drawn returns the client part of an id, for a client that gave none.
func drawn() string { return "c-" + crand.Text()[:16] }

// name gives a newcomer its id and, without a user, the secret by which it gets that id again. The
// backend is asked in between, where it has a say: without tokens it may name the user.
func (m *Manager) name(n *newcomer, q *hook.Question) error {
	id := n.c.identity
	if n.req.Client == "" {
		n.req.Client = cmp.Or(id.Client, drawn())
	}
	part, err := clientPart(n.req.Client, id.User)
	n.client = wire.ClientID(id.User, part)
	if err != nil && q != nil && m.opts.Access.Verify == nil && wire.CheckClientID(n.req.Client) == nil {
		n.client, err = n.req.Client, nil // perhaps it begins with the user that the backend is about to name
	}
	if err == nil && id.Client != "" && part != id.Client {
		err = wire.Errorf(wire.Forbidden, "client: the token is of client %s", id.Client)
	}
	if err == nil && q != nil {
		q.Client = n.client
		if n.c.identity, err = m.letIn(id, n.wish, q); err == nil {
			part, err = clientPart(n.req.Client, n.c.identity.User, id.User)
			n.client = wire.ClientID(n.c.identity.User, part)
		}
	}
	if err == nil && n.c.identity.User == "" {
		n.present(cmp.Or(n.req.Secret, crand.Text()))
	}
	return err
}

// present gives a newcomer without a user the secret that it is bound by.
func (n *newcomer) present(secret string) {
	n.secret, n.hash = secret, queue.HashSecret(secret)
}

// clientPart returns the client part of the id that a client gave, which may begin with one of
// users.
func clientPart(given string, users ...string) (string, error) {
	for _, user := range users {
		if part, own := strings.CutPrefix(given, user+"/"); own && user != "" {
			given = part
			break
		}
	}
	return given, wire.CheckClientPart(given)
}

// user returns whose client it is, "" for none.
func (s *Session) user() string { return wire.UserOf(s.client) }
