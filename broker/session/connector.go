package session

import (
	"context"
	crand "crypto/rand"
	"errors"
	"sync/atomic"

	"switchboard/broker/hook"
	"switchboard/broker/limit"
	"switchboard/internal/wire"
	"switchboard/queue"
)

// connector runs the steps 2 to 6 of a connect, which connect.go lists: it takes a connectJob from
// the session's loop through the pools and back. It holds the jobs that wait to be bound. The
// connectQueue has a lock of its own, and the other fields do not change. The loops and the pools'
// workers use it.
type connector struct {
	opts   *Options
	shards []*shard // by loop.Index
	binder *binder
	queue  connectQueue

	revocations *atomic.Int64  // Manager.revocations
	rebinds     *atomic.Int64  // Manager.rebinds
	senders     *limit.Senders // Manager.senders; nil for none
}

// authorize queues the job to be bound if the client may connect. It calls the connect hook only
// after the token was accepted, so that bad tokens cost the backend nothing.
func (c *connector) authorize(j *connectJob, q *hook.Question) {
	if j.identity, j.err = c.opts.Access.checkConnect(j.request); j.err == nil {
		j.err = c.assignID(j, q)
	}
	if j.err != nil {
		c.post([]*connectJob{j})
		return
	}
	c.enqueue(j)
}

// enqueue adds a job to the next batch.
func (c *connector) enqueue(j *connectJob) {
	if c.queue.add(j) {
		c.opts.Pool.Go(c.bindNext)
	}
}

// bindNext binds a batch. For the jobs that came meanwhile it queues itself again, after the other
// work in the pool.
func (c *connector) bindNext() {
	c.bindBatch(c.queue.take())
	if c.queue.batchDone() {
		c.opts.Pool.Go(c.bindNext)
	}
}

// bindBatch binds the jobs that need not wait, in one batch, and the others alone.
func (c *connector) bindBatch(jobs []*connectJob) {
	batch := make([]*connectJob, 0, len(jobs))
	var gone []*connectJob // their connections closed meanwhile: binding them would only delay the others
	for _, j := range jobs {
		switch {
		case j.gone.Load():
			j.err = errClientGone
			gone = append(gone, j)
		case c.tryHold(j):
			batch = append(batch, j)
		default:
			c.opts.Pool.Go(func() { c.bindAlone(j) })
		}
	}
	c.post(gone)
	c.bindLocked(c.binder.storeContext(), batch)
}

// tryHold takes a position in the $all channel and the client's lock for a job, if neither needs to
// wait.
func (c *connector) tryHold(j *connectJob) (ok bool) {
	if j.all, ok = c.opts.Hub.TryAcquire(wire.AllChannel, j.request.After); !ok {
		return false
	}
	if j.unlock, ok = c.binder.locks.tryLock(j.client); !ok {
		c.opts.Hub.Release(j.all.Channel)
	}
	return ok
}

// bindAlone binds one job. It waits for the store to prepare the $all channel, and for the client's
// lock.
func (c *connector) bindAlone(j *connectJob) {
	ctx := c.binder.storeContext()
	if j.all, j.err = c.opts.Hub.Acquire(ctx, wire.AllChannel, j.request.After); j.err != nil {
		c.post([]*connectJob{j})
		return
	}
	j.unlock = c.binder.locks.lock(j.client)
	c.bindLocked(ctx, []*connectJob{j})
}

// bindLocked binds jobs whose locks are held, and posts them. A client that asked for an id but
// does not have its secret gets a new id, in a second call to the store.
func (c *connector) bindLocked(ctx context.Context, jobs []*connectJob) {
	if len(jobs) == 0 {
		return
	}
	c.claim(ctx, jobs)
	var renamed []*connectJob
	for _, j := range jobs {
		if errors.Is(j.err, queue.ErrSecret) {
			j.client = randomClientPart()
			j.setSecret(crand.Text())
			j.unlock = c.binder.locks.lock(j.client)
			renamed = append(renamed, j)
		}
	}
	if len(renamed) > 0 {
		c.claim(ctx, renamed)
	}
	for _, j := range jobs {
		if j.err != nil {
			c.opts.Hub.Release(j.all.Channel)
			j.all.Channel = nil
		}
	}
	c.prepareChannels(ctx, jobs)
	c.post(jobs)
}

// claim binds the client of each job under its id, and then releases the client's lock.
func (c *connector) claim(ctx context.Context, jobs []*connectJob) {
	server, claims := c.opts.ServerID(), make([]queue.Claim, len(jobs))
	revocations, rebinds := c.revocations.Load(), c.rebinds.Load()
	issued := make([]int64, len(jobs))
	for i, j := range jobs {
		j.revocations, j.rebinds, issued[i] = revocations, rebinds, j.identity.Issued
		claims[i] = queue.Claim{
			Client: j.client, User: j.identity.User, Instance: j.request.Instance, Attempt: j.request.Attempt, Secret: j.secretHash,
		}
	}
	gone := func(i int) bool { return jobs[i].gone.Load() }
	results := c.binder.bind(ctx, claims, issued, gone)
	for i, j := range jobs {
		j.unlock()
		j.server, j.bindResult, j.err = server, &results[i], results[i].err
	}
}

// post posts jobs to the loops of their sessions, which finish them: one task per loop.
func (c *connector) post(jobs []*connectJob) {
	perShard := make([][]*connectJob, len(c.shards))
	for _, j := range jobs {
		i := j.session.shard.loop.Index
		perShard[i] = append(perShard[i], j)
	}
	for i, list := range perShard {
		if len(list) > 0 {
			c.shards[i].loop.Post(func() {
				for _, j := range list {
					j.finish()
				}
			})
		}
	}
}
