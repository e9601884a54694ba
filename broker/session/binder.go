package session

import (
	"context"
	"errors"
	"sync"

	"switchboard/broker/work"
	"switchboard/queue"
	"switchboard/registry"
)

// errClientGone is the error of a connectJob whose connection has closed. No client receives it.
var errClientGone = errors.New("session: the client left before it was bound")

// binder makes and ends the bindings of this server's clients in the store. The pool's workers use
// it. unbindLater, retryUnbinds, resolveUnconfirmed and notifySuperseded do not block, so the loops
// may call them too.
type binder struct {
	opts      *Options
	deadlines *work.Deadlines
	clients   *localClients
	locks     clientLocks

	unconfirmed unconfirmedBinds
	failed      failedUnbinds
	// uncertainUsers are clients whose users may have changed without a hint.
	uncertainUsers uncertainUsers
}

// storeContext returns the context of the store calls of one message. It is shared by calls that
// begin at about the same time, and its deadline ends it.
func (b *binder) storeContext() context.Context { return b.deadlines.Context() }

// bindResult is the result of one claim. Its pending is nil if the client was not bound.
type bindResult struct {
	bound   queue.Bound
	pending *pendingBind
	lists   registry.Subscriptions
	err     error
}

// clientLocks holds one lock per client. It serializes the store calls about that client, so that
// a bind and the unbind before it reach the store in order. The pool's workers use it; the loops
// never wait for a lock.
//
// A lock is a channel and not a mutex: it is held during store calls, and testing/synctest treats
// only a goroutine that waits for a channel as durably blocked.
type clientLocks struct {
	mu    sync.Mutex // guards the field below and every clientLock.users
	locks map[string]*clientLock
}

// lock waits for the client's lock.
func (c *clientLocks) lock(client string) (unlock func()) {
	c.mu.Lock()
	l := c.locks[client]
	if l == nil {
		l = c.addLocked(client)
		c.mu.Unlock()
		return func() { c.unlock(client, l) }
	}
	if l.users++; l.passed == nil {
		l.passed = make(chan struct{}, 1)
	}
	c.mu.Unlock()
	<-l.passed
	return func() { c.unlock(client, l) }
}

// tryLock takes the client's lock if no goroutine holds it or waits for it.
func (c *clientLocks) tryLock(client string) (unlock func(), ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.locks[client] != nil {
		return nil, false
	}
	l := c.addLocked(client)
	return func() { c.unlock(client, l) }, true
}

// addLocked adds a lock that the caller holds.
func (c *clientLocks) addLocked(client string) *clientLock {
	if c.locks == nil {
		c.locks = make(map[string]*clientLock)
	}
	l := &clientLock{users: 1}
	c.locks[client] = l
	return l
}

func (c *clientLocks) unlock(client string, l *clientLock) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(c.locks, client)
		return
	}
	l.passed <- struct{}{} // it has room: only the holder sends
}

// clientLock exists while a goroutine holds it or waits for it.
type clientLock struct {
	passed chan struct{} // of capacity 1: unlock passes the lock to a goroutine that waits; nil before the first waits
	users  int           // goroutines that hold the lock or wait for it
}
