package session

import "sync"

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
