package broker

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"switchboard/broker/auth"
	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/broker/session"
	"switchboard/internal/wire"
)

// doors are the parts of Options that say who may come in and do what. They are read at every call, and
// Reload replaces them.
type doors struct {
	keys       atomic.Pointer[auth.Keys]
	tokens     atomic.Pointer[auth.Tokens]
	namespaces atomic.Pointer[namespace.Set]
	pushes     limit.Rate // of each API key
	pushed     atomic.Pointer[map[auth.KeyID]*limit.SharedBucket]
}

func (d *doors) hang(o Options) {
	d.keys.Store(&o.Keys)
	d.tokens.Store(o.Tokens)
	d.namespaces.Store(o.Rules())
	d.hangPushed(o.Keys)
}

// hangPushed gives each API key a bucket, or the one that it had.
func (d *doors) hangPushed(keys auth.Keys) {
	if d.pushes.None() {
		return
	}
	next, before := map[auth.KeyID]*limit.SharedBucket{}, d.pushed.Load()
	for _, id := range keys.IDs() {
		if before != nil && (*before)[id] != nil {
			next[id] = (*before)[id]
		} else {
			next[id] = limit.NewSharedBucket(d.pushes)
		}
	}
	d.pushed.Store(&next)
}

// Reload takes the keys, tokens and namespaces of o in the place of those before; nothing else of it counts.
// Connections stay: a token that was verified is good until it ends. Subscriptions that the new namespaces
// do not allow are ended, and their clients told. When it returns an error nothing has changed.
func (b *Broker) Reload(o Options) error {
	if b.opts.Keys.Open() != o.Keys.Open() || b.opts.Tokens.Open() != o.Tokens.Open() {
		return errors.New("whether there are keys at all cannot change while the broker runs")
	}
	if !o.Tokens.Open() {
		if err := o.Tokens.Adopt(b.doors.tokens.Load()); err != nil {
			return err
		}
	}
	b.doors.hang(o)
	b.sessions.Recheck()
	return nil
}

// authorize checks the API key of a call, and gives what it may push.
func (b *Broker) authorize(authorization, scope string) (*limit.SharedBucket, error) {
	id, err := b.doors.keys.Load().Find(authorization, scope)
	if pushed := b.doors.pushed.Load(); pushed != nil && err == nil {
		return (*pushed)[id], nil
	}
	return nil, err
}

// keep is what a channel's namespace keeps of it.
func (b *Broker) keep(channel string) (messages int, age time.Duration) {
	if r := b.doors.namespaces.Load().For(channel); r != nil {
		return r.HistoryMessages, r.HistoryAge
	}
	return 0, 0
}

// verify is session.Access.Verify: why a token is bad is told to its owner, never logged.
func (b *Broker) verify(token string) (session.Identity, error) {
	claims, err := b.doors.tokens.Load().Verify(token)
	switch {
	case errors.Is(err, auth.ErrExpired):
		b.metrics.token("expired")
		return session.Identity{}, fmt.Errorf("%w: %w", session.ErrExpired, err)
	case errors.Is(err, auth.ErrUnready):
		b.metrics.token("unready")
		return session.Identity{}, wire.Errorf(wire.Unavailable, "token: %s", err.Error())
	case err != nil:
		b.metrics.token("bad")
		return session.Identity{}, wire.Errorf(wire.Unauthorized, "token: %s", err.Error())
	}
	b.metrics.token("ok")
	return session.Identity{User: claims.User, Client: claims.Client, Expires: claims.Expires, Info: claims.Info, Grants: claims.Grants}, nil
}

// fetchKeys keeps the keys of tokens that are fetched, until ctx ends.
func (b *Broker) fetchKeys(ctx context.Context) error {
	if remote := b.opts.Tokens.Remote(); remote != nil {
		remote.Run(ctx, b.opts.Logger, b.metrics.fetched)
	}
	return nil
}
