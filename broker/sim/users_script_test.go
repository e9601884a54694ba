package sim

import "testing"

// watchesBen returns a world with a client on the first server that watches the user ben.
func (w *world) watchesBen() *conn {
	w.meet()
	watcher := w.clients["ann/c1"].dial(w.nodes[0])
	w.runUntilIdle()
	watcher.watchUser("ben")
	return watcher
}

// expectUser checks that a watcher has received as many leaves of ben, and what it knows now.
func (w *world) expectUser(watcher *conn, when string, online bool, leaves int) {
	s := watcher.watches["ben"]
	if s == nil || s.online != online || s.leaves != leaves {
		w.violate("%s: %v knows %+v of ben, want that ben is online: %v, after %d leaves", when, watcher, s, online, leaves)
	}
}

// TestConnectDuringReadOfUser connects a client of a user after a new watcher's server has read the
// user, and before it receives the answer.
func TestConnectDuringReadOfUser(t *testing.T) {
	playScript(t, func(w *world) {
		watcher := w.watchesBen()
		read := w.runUntil("User")
		w.execute(read)
		w.clients["ben/c2"].dial(w.nodes[1])
		w.runUntil("User")
		w.answer(read)
		w.runUntilIdle()
		w.expectUser(watcher, "after the connect", true, 0)
		w.checkUsers(true)
	})
}

// TestStoreForgetsUserWatch lets the store lose that a server watches a user, without a failover
// that the server knows of. The server finds that with the next renewal of its registration.
func TestStoreForgetsUserWatch(t *testing.T) {
	playScript(t, func(w *world) {
		watcher := w.watchesBen()
		w.runUntilIdle()
		w.loseWatches(func(user string) bool { return user == "ben" })
		w.clients["ben/c2"].dial(w.nodes[1])
		w.runUntilIdle()
		w.expectUser(watcher, "after the loss", false, 0)
		w.awaitRenewals()
		w.expectUser(watcher, "after the renewal", true, 0)
		w.checkUsers(true)
	})
}

// TestGraceOfUser checks that a user who is away for less than the grace period stays online, and
// one who is away for longer goes offline.
func TestGraceOfUser(t *testing.T) {
	playScript(t, func(w *world) {
		watcher := w.watchesBen()
		ben := w.clients["ben/c2"].dial(w.nodes[1])
		w.runUntilIdle()
		leave := func() {
			ben.leave()
			ben.noticeEnd()
			w.runUntilIdle()
		}
		leave()
		w.tickAll(graceTicks - 1)
		w.expectUser(watcher, "within the grace period", true, 0)
		ben = w.clients["ben/c2"].dial(w.nodes[0]) // on another server
		w.runUntilIdle()
		w.tickAll(graceTicks + 1)
		w.expectUser(watcher, "back in time", true, 0)
		leave()
		w.tickAll(graceTicks + 1)
		w.expectUser(watcher, "after the grace period", false, 1)
		w.checkUsers(true)
	})
}
