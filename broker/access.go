package broker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"switchboard/broker/api"
	"switchboard/broker/auth"
	"switchboard/broker/limit"
	"switchboard/broker/namespace"
	"switchboard/broker/rights"
	"switchboard/broker/session"
	"switchboard/internal/wire"
)

// access holds the access rules in force. Every call reads them, and Reload replaces them.
type access struct {
	keys       atomic.Pointer[auth.Keys]
	tokens     atomic.Pointer[auth.Tokens]
	namespaces atomic.Pointer[namespace.Set]

	anonymous bool             // AccessOptions.Anonymous, which Reload does not change
	reserved  []namespace.Rule // of the extensions

	pushRate   limit.Rate                                         // of each API key
	pushLimits atomic.Pointer[map[auth.KeyID]*limit.SharedBucket] // by API key; nil if pushRate is unlimited
}

func newAccess(o AccessOptions, pushRate int) *access {
	a := &access{anonymous: o.Anonymous, pushRate: limit.PerSecond(pushRate)}
	_ = a.replace(o) // there are no reserved namespaces yet
	return a
}

// replace replaces the rules. If it returns an error, nothing has changed.
func (a *access) replace(o AccessOptions) error {
	namespaces, err := o.Rules().With(a.reserved)
	if err != nil {
		return fmt.Errorf("namespaces: %w", err)
	}
	a.keys.Store(&o.Keys)
	a.tokens.Store(o.Tokens)
	a.namespaces.Store(namespaces)
	a.replacePushLimits(o.Keys)
	return nil
}

// reserve adds the namespaces of extensions to those of the options.
func (a *access) reserve(rules []namespace.Rule) error {
	a.reserved = rules
	namespaces, err := a.namespaces.Load().With(a.reserved)
	if err != nil {
		return fmt.Errorf("namespaces: %w", err)
	}
	a.namespaces.Store(namespaces)
	return nil
}

// replacePushLimits gives each API key a rate limiter. A key that had one keeps it.
func (a *access) replacePushLimits(keys auth.Keys) {
	if a.pushRate.None() {
		return
	}
	next, before := map[auth.KeyID]*limit.SharedBucket{}, a.pushLimits.Load()
	for _, id := range keys.IDs() {
		if before != nil && (*before)[id] != nil {
			next[id] = (*before)[id]
		} else {
			next[id] = limit.NewSharedBucket(a.pushRate)
		}
	}
	a.pushLimits.Store(&next)
}

// authorize checks the API key of a call and returns the rate limiter of the key, nil for none.
func (a *access) authorize(authorization, scope string) (*limit.SharedBucket, error) {
	id, err := a.keys.Load().Find(authorization, scope)
	if limits := a.pushLimits.Load(); limits != nil && err == nil {
		return (*limits)[id], nil
	}
	return nil, err
}

// describeKey implements api.Options.Key.
func (a *access) describeKey(authorization string) api.Key {
	keys := a.keys.Load()
	id, err := keys.Find(authorization, "")
	if err != nil { // a reload has removed the key since the call was authorized
		return api.Key{Scopes: []string{}}
	}
	key := api.Key{}
	key.Name, key.Scopes = keys.Describe(id)
	if !keys.Open() {
		key.ID = string(id[:])
	}
	return key
}

// checkToken returns an error if clients could not connect with the token. Without token keys every
// token is good.
func (a *access) checkToken(token string) error {
	tokens := a.tokens.Load()
	if tokens.Open() {
		return nil
	}
	_, err := tokens.Verify(token)
	return err
}

// rights implements api.Options.Rights.
func (a *access) rights() rights.Rules {
	return rights.Rules{Tokens: a.tokens.Load(), Anonymous: a.anonymous, Namespaces: a.namespaces.Load()}
}

// retention returns how many messages of a channel its namespace keeps, and for how long. Zeros
// mean the queue's defaults.
func (a *access) retention(channel string) (messages int, age time.Duration) {
	if r := a.namespaces.Load().For(channel); r != nil {
		return r.HistoryMessages, r.HistoryAge
	}
	return 0, 0
}

// stateKeep returns how long the state of a channel is kept after its last update. 0 means that it
// never ends.
func (a *access) stateKeep(channel string) time.Duration {
	if r := a.namespaces.Load().For(channel); r != nil {
		return r.Keep()
	}
	return 0
}

// aliasField implements presence.Options.AliasField.
func (a *access) aliasField(channel, user string) string {
	if field := a.namespaces.Load().AliasField(channel); field != "" {
		return namespace.FieldOf(field, user)
	}
	return ""
}

// fieldsGone reports whether the namespace of a channel asks for events when fields end.
func (a *access) fieldsGone(channel string) bool {
	r := a.namespaces.Load().For(channel)
	return r != nil && r.FieldsGone
}

// Reload replaces the keys, tokens and namespaces by those of o and ignores its other fields.
// Connections stay, since a verified token is good until it expires. Subscriptions that the new
// namespaces forbid end, and their clients are notified. If it returns an error, nothing has
// changed.
func (b *Broker) Reload(o AccessOptions) error {
	if b.opts.Access.Keys.Open() != o.Keys.Open() || b.opts.Access.Tokens.Open() != o.Tokens.Open() {
		return errors.New("a running broker cannot change between having keys and having none; restart it")
	}
	if !o.Tokens.Open() {
		if err := o.Tokens.Adopt(b.access.tokens.Load()); err != nil {
			return err
		}
	}
	before := b.access.namespaces.Load()
	if err := b.access.replace(o); err != nil {
		return err
	}
	b.sessions.Recheck()
	after := b.access.namespaces.Load()
	b.presence.AliasesChanged(slices.DeleteFunc(b.hub.ChannelNames(), func(channel string) bool {
		return before.AliasField(channel) == after.AliasField(channel)
	}))
	return nil
}

// verify implements session.Access.Verify. The client receives the reason why a token is bad; the
// log does not.
func (b *Broker) verify(token string) (session.Identity, error) {
	claims, err := b.access.tokens.Load().Verify(token)
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
	return session.Identity{
		User: claims.User, Client: claims.Client, Issued: claims.Issued, Expires: claims.Expires, Info: claims.Info, Grants: claims.Grants,
		Subscribe: claims.Subscribe,
	}, nil
}

// fetchTokenKeys fetches the remote token keys again and again until ctx ends.
func (b *Broker) fetchTokenKeys(ctx context.Context) error {
	if remote := b.opts.Access.Tokens.Remote(); remote != nil {
		remote.Run(ctx, b.opts.Logger, b.metrics.fetched)
	}
	return nil
}
