package session

import "sync"

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

// clientLock exists while a goroutine holds it or waits for it.
type clientLock struct {
	held  chan struct{} // of capacity 1, full while the lock is held
	users int           // goroutines that hold the lock or wait for it
}

// lock waits for the client's lock.
func (c *clientLocks) lock(client string) (unlock func()) {
	c.mu.Lock()
	l := c.locks[client]
	if l == nil {
		l = c.addLocked(client)
	}
	l.users++
	c.mu.Unlock()
	l.held <- struct{}{}
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
	l.users++
	l.held <- struct{}{}
	return func() { c.unlock(client, l) }, true
}

func (c *clientLocks) addLocked(client string) *clientLock {
	if c.locks == nil {
		c.locks = make(map[string]*clientLock)
	}
	l := &clientLock{held: make(chan struct{}, 1)}
	c.locks[client] = l
	return l
}

func (c *clientLocks) unlock(client string, l *clientLock) {
	<-l.held
	c.mu.Lock()
	defer c.mu.Unlock()
	if l.users--; l.users == 0 {
		delete(c.locks, client)
	}
}
