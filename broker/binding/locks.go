package binding

import "sync"

// Lock waits for the client's lock, which serializes the store calls about the client.
func (b *Binder) Lock(client string) (unlock func()) { return b.locks.lock(client) }

// TryLock takes the client's lock if no goroutine holds it or waits for it.
func (b *Binder) TryLock(client string) (unlock func(), ok bool) { return b.locks.tryLock(client) }

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
