package session

import (
	"context"
	"errors"
	"slices"
	"strings"

	"switchboard/queue"
	"switchboard/registry"
)

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

// Lost says what the store may have lost of the binding of a client: its record, and its entry in
// the user's list of clients. The entry in this server's list may be lost in any case.
type Lost struct {
	Client       string
	Record, User bool
}

// Rebind compares the bindings of clients with the store, and makes them again under the server's
// current id where they differ. Then it compares the queues of clients whose record may be lost. It
// returns the clients that are perhaps not bound. Do not call it on a loop.
func (m *Manager) Rebind(ctx context.Context, list []Lost) (failed []string, err error) {
	jobs := m.renewJobs(list)
	if len(jobs) == 0 {
		return nil, nil
	}
	free, busy := make([]*renewJob, 0, len(jobs)), []*renewJob(nil)
	for _, j := range jobs {
		if unlock, ok := m.binder.locks.tryLock(j.binding.client); ok {
			j.unlock, free = unlock, append(free, j)
		} else {
			busy = append(busy, j)
		}
	}
	m.rebindLocked(ctx, free)
	for _, j := range busy {
		j.unlock = m.binder.locks.lock(j.binding.client)
		m.rebindLocked(ctx, []*renewJob{j})
	}
	for _, j := range jobs {
		if j.err != nil && !errors.Is(j.err, queue.ErrStale) && !errors.Is(j.err, registry.ErrRevoked) {
			failed, err = append(failed, j.binding.client), j.err
		}
	}
	return failed, err
}

// renewJobs returns a job for each of the clients that has an open session.
func (m *Manager) renewJobs(list []Lost) (jobs []*renewJob) {
	of := make([][]*renewJob, len(m.shards))
	for _, lost := range list {
		if s := m.clients.get(lost.Client); s != nil {
			i := s.shard.loop.Index
			of[i] = append(of[i], &renewJob{session: s, compared: true, lost: lost})
		}
	}
	m.eachShard(func(sh *shard) {
		i := sh.loop.Index
		of[i] = slices.DeleteFunc(of[i], func(j *renewJob) bool { return j.session.state != open })
		for _, j := range of[i] {
			j.binding, j.proof = binding{client: j.session.client, generation: j.session.generation}, j.session.credential
			j.subscriber = j.session.subscriber()
		}
	})
	return slices.Concat(of...)
}

// rebindLocked compares and renews bindings whose locks are held. It posts the results to the
// loops, and then compares the queues.
func (m *Manager) rebindLocked(ctx context.Context, jobs []*renewJob) {
	m.binder.renew(ctx, jobs)
	var bound []*Session
	for _, j := range jobs {
		j.unlock()
		j.session.shard.loop.Post(func() { j.session.renewed(j, false) })
		if j.err == nil && j.lost.Record {
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
