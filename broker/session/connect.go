package session

import (
	"errors"
	"math/rand/v2"
	"time"

	"switchboard/broker/binding"
	"switchboard/broker/hook"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// A connect request takes these steps. Each line names the functions in the order in which they
// run, and where they run.
//
//  1. Session.connect, on the session's loop: checks the message and creates a connectJob.
//  2. connector.authorize, in the pool (in the hooks' pool if there is a connect hook, on the loop
//     if there is neither a token nor a hook): Access.checkConnect and Access.identify check the
//     message and the token. assignID gives the client its id and calls the connect hook
//     (Hooks.askConnect).
//  3. connector.enqueue adds the job to the connectQueue.
//  4. connector.bindNext, in the pool: takes up to maxBindBatch jobs from the queue. For each
//     job, bindBatch takes a position in the $all channel and the per-client lock (tryHold). A job
//     that would have to wait for either goes through bindAlone.
//  5. connector.bindLocked, in the pool: binds all jobs of the batch in the store (claim,
//     binding.Binder.Bind). prepareChannels prepares the channels to which the clients subscribe
//     next.
//  6. connector.post posts the jobs to the loops of their sessions.
//  7. connectJob.finish, on the session's loop: collects the writes of steps 8 and 9 into one.
//  8. connectJob.openSession opens the session and sends `connected` (sendConnected), or
//     connectJob.refuse refuses the client and closes the connection.
//  9. Session.handleWaiting handles the messages that came after connect. The first is usually a
//     subscribe.
//
// Steps 1, 7 and 8 are in this file, steps 2 to 6 and prepareChannels in connector.go, and their
// types in connect_job.go. The functions of Access and assignID are in identity.go, handleWaiting
// in receive.go. A job that fails goes to step 6 at once.

// connect begins to bind the client to this server.
func (s *Session) connect(req wire.Request) {
	if s.state != fresh {
		s.refuse(req.Ref, wire.Errorf(wire.BadRequest, "connect: the connection already belongs to %s", s.client))
		return
	}
	if req.Ack != "" && req.Ack != "auto" && req.Ack != "client" {
		s.refuse(req.Ref, wire.Errorf(wire.BadRequest, `ack: %.40q is neither "client" nor "auto"`, req.Ack))
		return
	}
	s.state, s.inbox.auto = connecting, req.Ack == "auto"
	s.noteHeard()
	req.After = s.m.opts.Hub.ResumeCursor(req.After)
	j := &connectJob{session: s, request: req}
	s.shard.beginConnect(j)
	q := s.question(s.m.opts.Hooks.Connect, hook.Connect, "")
	s.busy = true
	if q == nil && s.m.opts.Access.Verify == nil { // nothing here takes long
		s.m.connector.authorize(j, nil)
		return
	}
	s.m.opts.poolFor(q).Go(func() { s.m.connector.authorize(j, q) })
}

// finish answers connect, and the subscribe after it, in one write.
func (j *connectJob) finish() {
	s := j.session
	s.busy = false
	s.corked(func() {
		s.shard.endConnect(s)
		j.openSession()
		if j.ready != nil {
			s.handleWaiting() // subscribe finds the channel ready
			s.m.opts.Hub.Release(j.ready)
		}
		s.handleWaiting()
	})
}

// openSession opens the session if the client was bound.
func (j *connectJob) openSession() {
	s, m := j.session, j.session.m
	if j.result != nil && j.result.Pending != nil {
		defer m.binder.End(j.client, j.result.Pending)
		m.binder.NotifySuperseded(j.client, j.result.Bound) // also if s is closed: the other session has lost the client
	}
	if j.err != nil {
		if s.state != closed {
			j.refuse()
		}
		return
	}
	if s.state == closed { // while the client was bound
		m.opts.Hub.Release(j.all.Channel)
		m.binder.UnbindLater(binding.Binding{Client: j.client, Generation: j.result.Bound.Generation})
		return
	}
	s.state = open
	s.client, s.credential, s.generation = j.client, credential(j.secretHash), j.result.Bound.Generation
	s.setIdentity(j.identity, j.result.Lists, max(1, queue.TimeOf(j.result.Bound.PrevGeneration).UnixMilli()))
	s.inbox.begin(j.result.Bound)
	if m.clients.add(s) {
		j.sendConnected()
	} else {
		s.close(wire.CloseSuperseded, "", 0)
	}
	if s.state == closed { // also after a failed write
		m.opts.Hub.Release(j.all.Channel)
		return
	}
	m.opts.Hub.Subscribe(&s.allSub, s.shard.loop, s, j.all)
	s.allSub.Start()
	if j.server != m.opts.ServerID() || // declared dead meanwhile
		j.rebinds != m.rebinds.Load() || // Manager.Held has perhaps not seen s
		j.revocations != m.revocations.Load() { // Manager.Revoke has perhaps not seen s
		s.shard.renewNow(s)
	}
	hinted, lists := m.binder.Missed(j.result.Pending)
	if lists {
		s.readLists(nil)
	}
	if hinted || j.mustReadInbox() {
		s.inbox.markDirty(s)
	}
	s.shard.cancelConnectCheck(s)
}

// mustReadInbox returns whether the new session must read its queue. If the bind found the queue
// empty and no hint has come since, it need not: the script that binds the client also counts its
// messages. That saves a store call and two tasks per connect.
func (j *connectJob) mustReadInbox() bool {
	return j.result.Bound.Queued > 0 || j.result.Bound.Last > j.result.Bound.Acked
}

// sendConnected sends `connected`.
func (j *connectJob) sendConnected() {
	s, req := j.session, j.request
	s.send(wire.Event{
		Type: wire.TypeConnected, Ref: req.Ref, Client: s.client, User: s.user(), Secret: j.secret,
		Server: s.m.opts.ServerID(), Ping: int(s.conn.Liveness().Ping / time.Second), Queued: &j.result.Bound.Queued,
		ID:     &j.all.ResumeID, // from which the client can resume the $all channel
		Limits: &s.m.limits, TokenIgnored: req.Token != "" && s.m.opts.Access.Verify == nil,
	})
	// After a recovery the subscription sends any gaps in order with the messages.
	if req.After != nil && !j.all.Recovered && j.all.Cursor != *req.After {
		s.sendGap(wire.AllChannel, *req.After, j.all.ResumeID)
	}
}

// refuse answers connect with j.err and closes the connection.
func (j *connectJob) refuse() {
	s := j.session
	if errors.Is(j.err, queue.ErrStale) { // a later connect of the same client was bound first
		s.close(wire.CloseSuperseded, "", 0)
		return
	}
	refusal := s.m.refusal(connectError(j.err))
	switch {
	case errors.Is(j.err, registry.ErrTooManyClients):
		s.m.opts.Metrics.Refused("user_connections")
	case errors.Is(j.err, registry.ErrRevoked):
		s.m.opts.Metrics.Refused("revoked_tokens")
	}
	s.refuse(j.request.Ref, refusal)
	switch refusal.Code {
	case wire.Unauthorized:
		s.m.opts.Notify.Rejected(rejectionReason(j.request.Token, j.err), s.conn.RemoteAddr())
		switch {
		case errors.Is(j.err, ErrExpired):
			s.close(wire.CloseExpired, tokenExpired, 0)
		case errors.Is(j.err, registry.ErrRevoked):
			s.close(wire.CloseExpired, tokenRevoked, 0)
		default:
			s.close(wire.CloseUnauthorized, refusal.Message, 0)
		}
	case wire.Unavailable, wire.RateLimited:
		s.close(wire.CloseOverloaded, refusal.Message, 500+rand.Int64N(4500)) // ms; random, to avoid a burst of reconnects
	default:
		s.close(wire.CloseUnauthorized, refusal.Message, 0)
	}
}

// connectError replaces the errors of tokens and of the user's limit by the *wire.Error that the
// client receives. It returns any other error unchanged.
func connectError(err error) error {
	switch {
	case errors.Is(err, ErrExpired):
		return wire.Errorf(wire.Unauthorized, "token: it ran out")
	case errors.Is(err, registry.ErrRevoked):
		return wire.Errorf(wire.Unauthorized, "token: it was revoked")
	case errors.Is(err, registry.ErrTooManyClients):
		return wire.Errorf(wire.RateLimited, "the user has as many clients online as are allowed")
	}
	return err
}
