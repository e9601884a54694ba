package session

import (
	"context"
	crand "crypto/rand"
	"errors"
	"sync"

	"switchboard/internal/wire"
	"switchboard/queue"
)

// maxBindBatch is the most clients of one bind batch.
const maxBindBatch = 256

// connectQueue holds the jobs of clients that connect while a batch is being bound. They form the
// next batch, which takes as many store calls as a single client. Of 15,000 clients that
// reconnected at once, each to a channel of its own, each cost 81 µs of CPU (80 to 90 in three
// runs) instead of 132 (101 to 169) with four store calls per client. The loops and the pool's
// workers use it.
type connectQueue struct {
	mu      sync.Mutex // guards the fields below
	waiting []*connectJob
	running bool // a bindNext is queued in the pool or runs
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

// queueConnect adds a job to the next batch.
func (m *Manager) queueConnect(j *connectJob) {
	if m.connects.add(j) {
		m.opts.Pool.Go(m.bindNext)
	}
}

// bindNext binds a batch. For the jobs that came meanwhile it queues itself again, after the other
// work in the pool.
func (m *Manager) bindNext() {
	m.bindBatch(m.connects.take())
	if m.connects.batchDone() {
		m.opts.Pool.Go(m.bindNext)
	}
}

// bindBatch binds the jobs that need not wait, in one batch, and the others alone.
func (m *Manager) bindBatch(jobs []*connectJob) {
	batch := make([]*connectJob, 0, len(jobs))
	var gone []*connectJob // while they waited: binding them would only delay the others
	for _, j := range jobs {
		if j.gone.Load() {
			j.err = errClientGone
			gone = append(gone, j)
			continue
		}
		var ok bool
		if j.all, ok = m.opts.Hub.TryAcquire(wire.AllChannel, j.request.After); ok {
			if j.unlock, ok = m.binder.locks.tryLock(j.client); !ok {
				m.opts.Hub.Release(j.all.Channel)
			}
		}
		if ok {
			batch = append(batch, j)
		} else {
			m.opts.Pool.Go(func() { m.bindAlone(j) })
		}
	}
	m.finishConnects(gone)
	m.bindLocked(m.storeContext(), batch)
}

// bindAlone binds one job. It waits for the store to prepare the $all channel, and for the client's
// lock.
func (m *Manager) bindAlone(j *connectJob) {
	ctx := m.storeContext()
	if j.all, j.err = m.opts.Hub.Acquire(ctx, wire.AllChannel, j.request.After); j.err != nil {
		m.finishConnects([]*connectJob{j})
		return
	}
	j.unlock = m.binder.locks.lock(j.client)
	m.bindLocked(ctx, []*connectJob{j})
}

// bindLocked binds jobs whose locks are held, and finishes them. A client that asked for an id but
// does not have its secret gets a new id, in a second call to the store.
func (m *Manager) bindLocked(ctx context.Context, jobs []*connectJob) {
	if len(jobs) == 0 {
		return
	}
	m.claim(ctx, jobs)
	var renamed []*connectJob
	for _, j := range jobs {
		if errors.Is(j.err, queue.ErrSecret) {
			j.client = randomClientPart()
			j.setSecret(crand.Text())
			j.unlock = m.binder.locks.lock(j.client)
			renamed = append(renamed, j)
		}
	}
	if len(renamed) > 0 {
		m.claim(ctx, renamed)
	}
	for _, j := range jobs {
		if j.err != nil {
			m.opts.Hub.Release(j.all.Channel)
			j.all.Channel = nil
		}
	}
	m.readyChannels(ctx, jobs)
	m.finishConnects(jobs)
}

// claim binds each job's client under its id, and unlocks it.
func (m *Manager) claim(ctx context.Context, jobs []*connectJob) {
	server, claims := m.opts.ServerID(), make([]queue.Claim, len(jobs))
	for i, j := range jobs {
		claims[i] = queue.Claim{
			Client: j.client, User: j.identity.User, Instance: j.request.Instance, Attempt: j.request.Attempt, Secret: j.secretHash,
		}
	}
	for i, r := range m.binder.bind(ctx, claims) {
		j := jobs[i]
		j.unlock()
		j.server, j.bound, j.pending, j.err = server, r.bound, r.pending, r.err
	}
}
