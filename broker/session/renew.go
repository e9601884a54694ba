package session

import (
	"context"
	"errors"
	"slices"
	"strings"

	"switchboard/broker/binding"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// maxRenewBatch is the most bindings that are renewed in one batch.
const maxRenewBatch = 256

// renewJob renews the binding of one session.
type renewJob struct {
	session *Session
	proof   credential
	unlock  func() // releases the client's lock
	binding.Renewal
}

// newRenewJob returns a job for an open session. It must be called on the session's loop.
func (s *Session) newRenewJob() *renewJob {
	j := &renewJob{session: s}
	j.begin()
	return j
}

// begin sets what the renewal needs of the session. It must be called on the session's loop.
func (j *renewJob) begin() {
	s := j.session
	j.Binding, j.proof, j.Subscriber = binding.Binding{Client: s.client, Generation: s.generation}, s.credential, s.subscriber()
	j.Secret, j.Issued = queue.SecretHash(s.credential), s.credential.issued()
}

// renewLater has the pool renew the bindings of some of the shard's sessions, one batch after the
// other, so that a server with many sessions does not occupy more workers than one with few. If
// readInbox is set, each session then reads its queue, because it may have missed hints. done is
// called once per session.
func (sh *shard) renewLater(sessions []*Session, readInbox bool, done func()) {
	if len(sessions) == 0 {
		return
	}
	jobs := make([]*renewJob, len(sessions))
	for i, s := range sessions {
		s.mustRenew = false
		jobs[i] = s.newRenewJob()
	}
	sh.m.opts.Pool.Go(func() {
		for batch := range slices.Chunk(jobs, maxRenewBatch) {
			sh.renewBatch(batch, readInbox, done)
		}
	})
}

// renewNow has the pool renew the binding of one session, which then reads its queue.
func (sh *shard) renewNow(s *Session) { sh.renewLater([]*Session{s}, true, func() {}) }

// renewBatch renews the bindings whose locks are free in one batch, and the others alone. The
// renewals of 15,000 bindings within a minute took 0.91 s of CPU, their heartbeats included
// (0.87 to 1.03 in three runs). With one call per binding they took 1.23 s (1.18 to 1.28).
func (sh *shard) renewBatch(jobs []*renewJob, readInbox bool, done func()) {
	binder, batch := sh.m.binder, make([]*renewJob, 0, len(jobs))
	for _, j := range jobs {
		var ok bool
		if j.unlock, ok = binder.TryLock(j.Client); ok {
			batch = append(batch, j)
			continue
		}
		sh.m.opts.Pool.Go(func() {
			j.unlock = binder.Lock(j.Client)
			sh.renewLocked([]*renewJob{j}, readInbox, done)
		})
	}
	sh.renewLocked(batch, readInbox, done)
}

// renewLocked renews bindings whose locks are held, and posts the results to the loop.
func (sh *shard) renewLocked(jobs []*renewJob, readInbox bool, done func()) {
	if len(jobs) == 0 {
		return
	}
	sh.m.renewJobs(sh.m.storeContext(), jobs)
	sh.loop.Post(func() {
		for _, j := range jobs {
			j.session.renewed(j, readInbox)
		}
	})
	for range jobs {
		done()
	}
}

// renewJobs renews bindings in the store whose locks are held, and then releases the locks.
func (m *Manager) renewJobs(ctx context.Context, jobs []*renewJob) {
	list := make([]*binding.Renewal, len(jobs))
	for i, j := range jobs {
		list[i] = &j.Renewal
	}
	m.binder.Renew(ctx, list)
	for _, j := range jobs {
		j.unlock()
	}
}

// renewed handles the result of a renewal on the loop.
func (s *Session) renewed(j *renewJob, readInbox bool) {
	switch err := j.Err; {
	case s.state != open:
		s.m.binder.UnbindLater(j.Binding) // the session ended meanwhile
	case errors.Is(err, queue.ErrStale):
		s.close(wire.CloseSuperseded, "", 0)
	case errors.Is(err, registry.ErrRevoked) && j.proof == s.credential:
		s.close(wire.CloseExpired, tokenRevoked, 0)
	case err != nil && j.Compared: // the caller of Rebind tries again
	case err != nil:
		s.m.opts.Logger.Warn().Err(err).Msg("binding not renewed; the next tick tries again")
		s.mustRenew = true
		s.shard.checkNextTick(s)
	default:
		if !j.Lists.Empty() {
			s.corked(func() { s.applyLists(j.Lists) })
		}
		if readInbox && s.state == open {
			s.inbox.markDirty(s)
		}
	}
}

// recentGenerations is the difference of the generations of two bindings that are a minute apart.
// A generation has the time of the binding in its upper bits, as an id.
const recentGenerations = 60_000 << 12

// HeldClient is a client with a session on this server.
type HeldClient struct {
	Client string
	Recent bool // bound in the last minute before the newest binding
}

// Held returns the clients with an open session, sorted. Clients that are being bound are not among
// them: from now on they compare their binding when their session is open.
func (m *Manager) Held() []HeldClient {
	m.rebinds.Add(1)
	sessions := m.clients.sessions()
	newest := int64(0)
	for _, s := range sessions {
		newest = max(newest, s.generation)
	}
	held := make([]HeldClient, len(sessions))
	for i, s := range sessions {
		held[i] = HeldClient{s.client, newest-s.generation < recentGenerations}
	}
	slices.SortFunc(held, func(a, b HeldClient) int { return strings.Compare(a.Client, b.Client) })
	return held
}

// Rebind compares the bindings of clients with the store, and makes them again under the server's
// current id where they differ. Then it compares the queues of clients whose record may be lost. It
// returns the clients that are perhaps not bound. Do not call it on a loop.
func (m *Manager) Rebind(ctx context.Context, list []binding.Lost) (failed []string, err error) {
	jobs := m.lostJobs(list)
	if len(jobs) == 0 {
		return nil, nil
	}
	free, busy := make([]*renewJob, 0, len(jobs)), []*renewJob(nil)
	for _, j := range jobs {
		if unlock, ok := m.binder.TryLock(j.Client); ok {
			j.unlock, free = unlock, append(free, j)
		} else {
			busy = append(busy, j)
		}
	}
	m.rebindLocked(ctx, free)
	for _, j := range busy {
		j.unlock = m.binder.Lock(j.Client)
		m.rebindLocked(ctx, []*renewJob{j})
	}
	for _, j := range jobs {
		if j.Err != nil && !errors.Is(j.Err, queue.ErrStale) && !errors.Is(j.Err, registry.ErrRevoked) {
			failed, err = append(failed, j.Client), j.Err
		}
	}
	return failed, err
}

// lostJobs returns a job for each of the clients that has an open session.
func (m *Manager) lostJobs(list []binding.Lost) (jobs []*renewJob) {
	of := make([][]*renewJob, len(m.shards))
	for _, lost := range list {
		if s := m.clients.get(lost.Client); s != nil {
			i := s.shard.loop.Index
			of[i] = append(of[i], &renewJob{session: s, Renewal: binding.Renewal{Compared: true, Lost: lost}})
		}
	}
	m.eachShard(func(sh *shard) {
		i := sh.loop.Index
		of[i] = slices.DeleteFunc(of[i], func(j *renewJob) bool { return j.session.state != open })
		for _, j := range of[i] {
			j.begin()
		}
	})
	return slices.Concat(of...)
}

// rebindLocked compares and renews bindings whose locks are held. It posts the results to the
// loops, and then compares the queues.
func (m *Manager) rebindLocked(ctx context.Context, jobs []*renewJob) {
	m.renewJobs(ctx, jobs)
	var bound []*Session
	for _, j := range jobs {
		j.session.shard.loop.Post(func() { j.session.renewed(j, false) })
		if j.Err == nil && j.Lost.Record {
			bound = append(bound, j.session)
		}
	}
	if len(bound) == 0 {
		return
	}
	if err := m.compareChunk(ctx, bound); err != nil { // a later tick compares again
		m.opts.Logger.Warn().Err(err).Msg("queues of clients that were bound again are not compared; a later tick tries again")
	}
}
