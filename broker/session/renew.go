package session

import (
	"context"
	"errors"
	"slices"
	"strings"

	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// maxRenewBatch is the most bindings that are renewed in one batch.
const maxRenewBatch = 256

// renewJob renews the binding of one session.
type renewJob struct {
	session *Session
	binding binding
	proof   credential
	// subscriber, listed and lists are of the subscriptions that the backend has made.
	subscriber registry.Subscriber
	listed     bool // the store has some
	lists      registry.Subscriptions
	unlock     func() // releases the per-client lock
	err        error

	compared bool // only what the store has lost is written, see Lost
	lost     Lost
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
		jobs[i] = &renewJob{session: s, binding: binding{client: s.client, generation: s.generation}, proof: s.credential, subscriber: s.subscriber()}
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
	locks, batch := &sh.m.binder.locks, make([]*renewJob, 0, len(jobs))
	for _, j := range jobs {
		var ok bool
		if j.unlock, ok = locks.tryLock(j.binding.client); ok {
			batch = append(batch, j)
			continue
		}
		sh.m.opts.Pool.Go(func() {
			j.unlock = locks.lock(j.binding.client)
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
	sh.m.binder.renew(sh.m.storeContext(), jobs)
	for _, j := range jobs {
		j.unlock()
	}
	sh.loop.Post(func() {
		for _, j := range jobs {
			j.session.renewed(j, readInbox)
		}
	})
	for range jobs {
		done()
	}
}

// renew renews bindings in the store, under the server's current id.
func (b *binder) renew(ctx context.Context, jobs []*renewJob) {
	server, clients := b.opts.ServerID(), make([]string, len(jobs))
	for i, j := range jobs {
		clients[i] = j.binding.client
	}
	if err := b.opts.Registry.HoldClients(ctx, server, clients); err != nil {
		for _, j := range jobs {
			j.err = err
		}
		return
	}
	b.renewRecords(ctx, server, jobs)
	b.renewUsers(ctx, server, jobs)
}

// renewRecords renews the records of the clients.
func (b *binder) renewRecords(ctx context.Context, server string, jobs []*renewJob) {
	var held []queue.HeldClient
	var of []*renewJob // the job of each entry of held
	for _, j := range jobs {
		if j.compared && !j.lost.Record {
			continue
		}
		h := queue.HeldClient{Client: j.binding.client, User: wire.UserOf(j.binding.client), Generation: j.binding.generation}
		if h.User == "" {
			h.Secret = queue.SecretHash(j.proof)
		}
		held, of = append(held, h), append(of, j)
	}
	if len(held) == 0 {
		return
	}
	for i, err := range b.opts.Queue.RefreshClients(ctx, server, held) {
		of[i].err = err
	}
}

// renewUsers renews the entries in the users' lists of clients.
func (b *binder) renewUsers(ctx context.Context, server string, jobs []*renewJob) {
	var users, compared []registry.UserBinding
	var of, ofCompared []*renewJob
	for _, j := range jobs {
		user := wire.UserOf(j.binding.client)
		if j.err != nil || user == "" || j.compared && !j.lost.User {
			continue
		}
		bound := registry.Binding{Client: j.binding.client, Server: server, Generation: j.binding.generation}
		entry := registry.UserBinding{User: user, Binding: bound, Issued: j.proof.issued()}
		if j.compared && !j.lost.Renamed && !b.uncertainUsers.has(j.binding.client) {
			compared, ofCompared = append(compared, entry), append(ofCompared, j)
		} else {
			users, of = append(users, entry), append(of, j)
		}
	}
	if len(compared) > 0 {
		have, err := b.opts.Registry.UsersHave(ctx, compared)
		for i, j := range ofCompared {
			if j.err = err; err == nil && !have[i] {
				users, of = append(users, compared[i]), append(of, j)
			}
		}
	}
	if len(users) > 0 {
		for i, err := range b.opts.Registry.BindUsers(ctx, users) {
			of[i].err = err
			if b.uncertainUsers.bound(users[i].Client, of[i].compared, err) {
				b.opts.Notify.UserChanged(users[i].User, users[i].Watchers) // meanwhile the user seemed to be offline
			}
		}
	}
	b.renewLists(ctx, jobs, users, of)
}

// renewed handles the result of a renewal on the loop.
func (s *Session) renewed(j *renewJob, readInbox bool) {
	switch err := j.err; {
	case s.state != open:
		s.m.binder.unbindLater(j.binding) // the session ended meanwhile
	case errors.Is(err, queue.ErrStale):
		s.close(wire.CloseSuperseded, "", 0)
	case errors.Is(err, registry.ErrRevoked) && j.proof == s.credential:
		s.close(wire.CloseExpired, tokenRevoked, 0)
	case err != nil && j.compared: // the caller of Rebind tries again
	case err != nil:
		s.m.opts.Logger.Warn().Err(err).Msg("binding not renewed; the next tick tries again")
		s.mustRenew = true
		s.shard.checkNextTick(s)
	default:
		if !j.lists.Empty() {
			s.corked(func() { s.applyLists(j.lists) })
		}
		if readInbox && s.state == open {
			s.inbox.markDirty(s)
		}
	}
}

// renewLists reads the lists of clients whose bindings were renewed, if they may have some. users
// has the bindings of those with a user.
func (b *binder) renewLists(ctx context.Context, jobs []*renewJob, users []registry.UserBinding, withUser []*renewJob) {
	for i, u := range users {
		withUser[i].listed = u.Subscribed
	}
	var list []registry.Subscriber
	var read []*renewJob
	for _, j := range jobs {
		if j.err == nil && (j.listed || !j.subscriber.Held.Empty()) {
			list, read = append(list, j.subscriber), append(read, j)
		}
	}
	if len(list) == 0 {
		return
	}
	for i, o := range b.opts.Registry.Subscriptions(ctx, list) {
		read[i].lists, read[i].err = o.Subscriptions, o.Err
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

// Lost says what the store may have lost of the binding of a client: its record, and its entry in
// the user's list of clients. The entry in this server's list may be lost in any case.
type Lost struct {
	Client       string
	Record, User bool
	// Renamed is set if the server has had another id, under which the client was bound. The user's
	// entry is then written without a comparison: a renewal may have written it already, without
	// notifying the servers that watch the user.
	Renamed bool
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
