package binding

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"switchboard/queue"
)

const (
	// maxUnconfirmed bounds the remembered unconfirmed binds.
	maxUnconfirmed = 1 << 14
	// maxResolved bounds the unconfirmed binds that one tick resolves: after an outage of the store
	// other work needs it too.
	maxResolved = 64
	// lateBindEnds is how long after its failure a bind may still be executed: the store finds it late
	// after queue.MaxBindDelay, and the clocks of store and broker may differ a little in speed.
	lateBindEnds = queue.MaxBindDelay + time.Second
)

// unconfirmedBinds remembers the bind calls that failed. The store may have executed them, or may
// execute them until they end: then a client is bound to this server without a session here. Each
// tick resolves some of them. A bind is resolved soon, and again after its end. The pool's workers
// and the tick use it.
type unconfirmedBinds struct {
	mu   sync.Mutex // guards the field below
	list map[boundClient]bindState
}

// add remembers a bind that has failed now.
func (l *unconfirmedBinds) add(client, server string) {
	l.put(unconfirmedBind{boundClient{client, server}, bindState{ends: time.Now().Add(lateBindEnds)}})
}

// put remembers a bind, unless a later one of the client is remembered.
func (l *unconfirmedBinds) put(u unconfirmedBind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.list == nil {
		l.list = make(map[boundClient]bindState)
	}
	if later, found := l.list[u.boundClient]; found && later.ends.After(u.ends) || !found && len(l.list) >= maxUnconfirmed {
		return
	}
	l.list[u.boundClient] = u.bindState
}

// take removes up to n binds that are to be resolved now, and returns them in a fixed order, which
// a simulation can repeat.
func (l *unconfirmedBinds) take(n int) []unconfirmedBind {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := time.Now()
	var some []unconfirmedBind
	for u, s := range l.list {
		if s.resolved && now.Before(s.ends) {
			continue
		}
		if len(some) == n {
			break
		}
		some = append(some, unconfirmedBind{u, s})
		delete(l.list, u)
	}
	slices.SortFunc(some, unconfirmedBind.compare)
	return some
}

func (l *unconfirmedBinds) empty() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.list) == 0
}

// boundClient names a failed bind. server is this server's id at the time of the call.
type boundClient struct{ client, server string }

// bindState is the state of a failed bind.
type bindState struct {
	ends     time.Time // when the store no longer executes it
	resolved bool      // only its end is awaited
}

// unconfirmedBind is one failed bind.
type unconfirmedBind struct {
	boundClient
	bindState
}

func (u unconfirmedBind) compare(other unconfirmedBind) int {
	return cmp.Or(strings.Compare(u.client, other.client), strings.Compare(u.server, other.server))
}

// failedUnbinds are bindings that could not be ended. The pool's workers add them, and the next
// tick tries again.
type failedUnbinds struct {
	mu   sync.Mutex // guards the field below
	list []Binding
}

func (f *failedUnbinds) add(old Binding) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, old)
}

func (f *failedUnbinds) empty() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.list) == 0
}

// take empties the list and returns it.
func (f *failedUnbinds) take() []Binding {
	f.mu.Lock()
	defer f.mu.Unlock()
	list := f.list
	f.list = nil
	return list
}

// uncertainUsers are the clients whose entry in the user's list of clients was to be restored by a
// call that failed. The store may have executed the call, but its answer would have had the servers
// that watch the user. A comparison would find nothing to do. So the next renewal of the client
// writes the entry again, and notifies those servers.
type uncertainUsers struct {
	mu      sync.Mutex // guards the field below
	clients map[string]struct{}
}

func (u *uncertainUsers) has(client string) bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	_, uncertain := u.clients[client]
	return uncertain
}

// bound records the outcome of a call that wrote the entry, which is restored if a comparison has
// missed it. It returns whether the servers that watch the user must be notified.
func (u *uncertainUsers) bound(client string, restored bool, err error) (notify bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if _, uncertain := u.clients[client]; !uncertain && !restored {
		return false
	}
	if err == nil {
		delete(u.clients, client)
		return true
	}
	if u.clients == nil {
		u.clients = map[string]struct{}{}
	}
	u.clients[client] = struct{}{}
	return true
}

func (u *uncertainUsers) forget(client string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.clients, client)
}
