package session

import (
	"context"
	"net/netip"
	"sync"
	"sync/atomic"

	"switchboard/broker/binding"
	"switchboard/broker/hub"
	"switchboard/broker/limit"
	"switchboard/internal/meter"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// maxBindBatch is the most clients of one bind batch.
const maxBindBatch = 256

// connectJob carries one connect request through the steps above. Except for early and gone, only
// the goroutine that runs the current step uses it.
type connectJob struct {
	session *Session
	request wire.Request

	early atomic.Pointer[earlySubscribe] // the subscribe that follows connect
	gone  atomic.Bool                    // the connection has closed

	identity   Identity         // set in step 2
	client     string           // the id to bind
	secret     string           // with which a client without a user can reconnect under its id; else ""
	secretHash queue.SecretHash // of secret

	revocations int64 // Manager.revocations before step 5
	rebinds     int64 // Manager.rebinds before step 5

	unlock func()          // releases the per-client lock, from step 4 until the bind in step 5
	all    hub.Position    // where the client begins in the $all channel; the job holds the channel
	server string          // the server's id at the time of the bind
	result *binding.Result // of step 5, shared with the batch; nil before it
	ready  *hub.Channel    // the channel of early, which the job holds until step 9; nil for none

	err error // of all steps, also that of result
}

// setSecret sets the secret by which a client without a user is bound.
func (j *connectJob) setSecret(secret string) {
	j.secret, j.secretHash = secret, queue.HashSecret(secret)
}

// connectQueue holds the jobs of clients that connect while a batch is being bound. They form the
// next batch, which takes as many store calls as a single client. When 15,000 clients reconnected
// at once, each to a channel of its own, a client took 81 µs of CPU (80 to 90 in three runs). With
// four store calls per client it took 132 µs (101 to 169). The loops and the pool's workers use it.
type connectQueue struct {
	mu      sync.Mutex // guards the fields below
	waiting []*connectJob
	running bool // a connector.bindNext is queued in the pool or runs
}

// add appends a job. It returns true if the caller must have the pool run bindNext.
func (q *connectQueue) add(j *connectJob) (start bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting = append(q.waiting, j)
	start, q.running = !q.running, true
	return start
}

// take removes the jobs of the next batch and returns them.
func (q *connectQueue) take() []*connectJob {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.waiting), maxBindBatch)
	batch := q.waiting[:n:n]
	q.waiting = q.waiting[n:]
	return batch
}

// batchDone returns whether there are jobs for another batch.
func (q *connectQueue) batchDone() (more bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.running = len(q.waiting) > 0; !q.running {
		q.waiting = nil
	}
	return q.running
}

// connector runs the steps 2 to 6 of a connect, which connect.go lists: it takes a connectJob from
// the session's loop through the pools and back. It holds the jobs that wait to be bound. The
// connectQueue has a lock of its own, and the other fields do not change. The loops and the pools'
// workers use it.
type connector struct {
	opts         *Options
	shards       []*shard // by loop.Index
	binder       *binding.Binder
	storeContext func() context.Context // Manager.storeContext
	queue        connectQueue

	revocations *atomic.Int64  // Manager.revocations
	rebinds     *atomic.Int64  // Manager.rebinds
	senders     *limit.Senders // Manager.senders; nil for none
}

// earlySubscribe is what the preparation needs of the message and of the connection.
type earlySubscribe struct {
	channel string
	after   *int64         // the position, as in the message
	peer    netip.AddrPort // of the connection
	read    meter.Meter    // of the preparation
}

// beginConnect registers the job of a session that is being connected.
func (sh *shard) beginConnect(j *connectJob) {
	if sh.connecting == nil {
		sh.connecting = make(map[*Session]*connectJob)
	}
	sh.connecting[j.session] = j
}

// endConnect undoes beginConnect. It drops an empty map, which would keep the size of a burst.
func (sh *shard) endConnect(s *Session) {
	if delete(sh.connecting, s); len(sh.connecting) == 0 {
		sh.connecting = nil
	}
}
