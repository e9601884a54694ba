package session

import (
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"switchboard/broker/hook"
	"switchboard/broker/hub"
	"switchboard/internal/wire"
	"switchboard/queue"
	"switchboard/registry"
)

// A connect request takes these steps. Each line names the functions in the order in which they
// run, and where they run.
//
//  1. connect, on the session's loop: checks the message and creates a connectJob.
//  2. Manager.authorize, in the pool (in the hooks' pool if there is a connect hook, on the loop if
//     there is neither a token nor a hook): checkConnect and identify check the message and the
//     token; assignID gives the client its id and calls the connect hook (Hooks.askConnect).
//  3. Manager.queueConnect adds the job to the connectQueue.
//  4. Manager.bindNext, in the pool: takes up to maxBindBatch jobs from the queue. bindBatch takes
//     their per-client locks. A job that would have to wait, for a lock or for the $all channel,
//     goes through bindAlone.
//  5. Manager.bindLocked, in the pool: binds all jobs of the batch in the store (claim,
//     binder.bind). readyChannels prepares the channels to which the clients subscribe next.
//  6. Manager.finishConnects posts the jobs to the loops of their sessions.
//  7. finishConnect, on the session's loop: collects the writes of the next two steps into one.
//  8. openSession opens the session and sends `connected` (sendConnected), or connectFailed refuses
//     the client and closes the connection.
//  9. handleWaiting handles the messages that came after connect. The first is usually a subscribe.
//
// Steps 1, 2 and 6 to 8 are in this file, assignID and identify in identity.go, steps 3 to 5 in
// connect_batch.go, binder.bind in binding.go, readyChannels in early_subscribe.go, handleWaiting
// in waiting.go. A job that fails goes to step 6 at once.

// connectJob carries one connect request through the steps above. Except for early and gone, only
// the goroutine that runs the current step uses it.
type connectJob struct {
	session *Session
	request wire.Request

	early atomic.Pointer[wire.Request] // the subscribe that follows connect; see early_subscribe.go
	gone  atomic.Bool                  // the connection has closed

	identity   Identity         // set in step 2
	client     string           // the id to bind
	secret     string           // by which a client without a user gets its id again; "" with a user
	secretHash queue.SecretHash // of secret

	unlock  func()       // releases the per-client lock, from step 4 until the bind in step 5
	all     hub.Position // where the client begins in the $all channel, which is held
	server  string       // the server's id at the time of the bind
	bound   queue.Bound
	pending *pendingBind // nil unless the client was bound
	ready   *hub.Channel // the channel of early, held until step 9; or nil

	err error
}

// errClientGone is the error of a connectJob whose connection has closed. No client receives it.
var errClientGone = errors.New("session: the client left before it was bound")

// connect begins to bind the client to this server.
func (s *Session) connect(req wire.Request) {
	if s.state != fresh {
		s.refuse(req.Ref, wire.Errorf(wire.BadRequest, "connect: the connection is %s's already", s.client))
		return
	}
	if req.Ack != "" && req.Ack != "auto" && req.Ack != "client" {
		s.refuse(req.Ref, wire.Errorf(wire.BadRequest, `ack: %.40q is neither "client" nor "auto"`, req.Ack))
		return
	}
	s.state, s.inbox.auto = connecting, req.Ack == "auto"
	s.noteHeard()
	j := &connectJob{session: s, request: req}
	s.shard.beginConnect(j)
	q := s.question(s.m.opts.Hooks.Connect, hook.Connect, "")
	s.busy = true
	if q == nil && s.m.opts.Access.Verify == nil { // nothing here takes long
		s.m.authorize(j, nil)
		return
	}
	s.m.poolFor(q).Go(func() { s.m.authorize(j, q) })
}

// authorize queues the job to be bound if the client may connect. It calls the connect hook only
// after the token was accepted, so that bad tokens cost the backend nothing.
func (m *Manager) authorize(j *connectJob, q *hook.Question) {
	if j.identity, j.err = m.checkConnect(j.request); j.err == nil {
		j.err = m.assignID(j, q)
	}
	if j.err != nil {
		m.finishConnects([]*connectJob{j})
		return
	}
	m.queueConnect(j)
}

// finishConnects posts jobs to the loops of their sessions.
func (m *Manager) finishConnects(jobs []*connectJob) {
	perShard := make([][]*connectJob, len(m.shards))
	for _, j := range jobs {
		i := j.session.shard.loop.Index
		perShard[i] = append(perShard[i], j)
	}
	for i, list := range perShard {
		if len(list) > 0 {
			m.shards[i].loop.Post(func() {
				for _, j := range list {
					j.session.finishConnect(j)
				}
			})
		}
	}
}

// finishConnect answers connect, and the subscribe after it, in one write.
func (s *Session) finishConnect(j *connectJob) {
	s.busy = false
	s.corked(func() {
		s.shard.endConnect(s)
		s.openSession(j)
		if j.ready != nil {
			s.handleWaiting() // subscribe finds the channel ready
			s.m.opts.Hub.Release(j.ready)
		}
		s.handleWaiting()
	})
}

// openSession opens the session if the client was bound.
func (s *Session) openSession(j *connectJob) {
	if j.pending != nil {
		defer s.m.clients.endBind(j.client, j.pending)
		s.m.notifySuperseded(j.client, j.bound) // also if s is closed: the other session has lost the client
	}
	if j.err != nil {
		if s.state != closed {
			s.connectFailed(j.request, j.err)
		}
		return
	}
	if s.state == closed { // while the client was bound
		s.m.opts.Hub.Release(j.all.Channel)
		s.m.binder.unbindLater(binding{client: j.client, generation: j.bound.Generation})
		return
	}
	s.state = open
	s.client, s.secret, s.generation = j.client, j.secretHash, j.bound.Generation
	s.setIdentity(j.identity)
	s.inbox.begin(j.bound)
	if s.m.addClient(s) {
		s.sendConnected(j)
	} else {
		s.close(wire.CloseSuperseded, "the client connected elsewhere", 0)
	}
	if s.state == closed { // also after a failed write
		s.m.opts.Hub.Release(j.all.Channel)
		return
	}
	s.startSubscription(&s.allSub, j.all)
	if j.server != s.m.opts.ServerID() { // declared dead meanwhile; Manager.RenewAll has not seen s
		s.renewLater()
	}
	if s.m.mustReadInbox(j) {
		s.inboxMarkDirty()
	}
	s.cancelConnectCheck()
}

// notifySuperseded notifies the server that held the client before it was bound here.
func (m *Manager) notifySuperseded(client string, bound queue.Bound) {
	switch bound.PrevServer {
	case "":
	case m.opts.ServerID():
		m.Supersede(client, bound.Generation)
	default:
		m.opts.Notify.Superseded(bound.PrevServer, client, bound.Generation)
	}
}

// mustReadInbox returns whether a new session must read its queue. If the bind found the queue
// empty and no hint has come since, it need not: the script that binds the client also counts its
// messages. That saves a store call and two tasks per connect.
func (m *Manager) mustReadInbox(j *connectJob) bool {
	return j.bound.Queued > 0 || j.bound.Last > j.bound.Acked || m.clients.wasHinted(j.pending)
}

// sendConnected sends `connected`.
func (s *Session) sendConnected(j *connectJob) {
	req := j.request
	s.send(wire.Event{
		Type: wire.TypeConnected, Ref: req.Ref, Client: s.client, User: s.user(), Secret: j.secret,
		Server: s.m.opts.ServerID(), Ping: int(s.conn.Liveness().Ping / time.Second), Queued: &j.bound.Queued,
		ID: &j.all.Cursor, // from which the client can resume the $all channel
	})
	if req.After != nil && !j.all.Recovered && j.all.Cursor != *req.After { // else gaps come in order with the messages
		s.Gap(wire.AllChannel, *req.After, j.all.Cursor)
	}
}

// connectFailed answers connect with an error and closes the connection.
func (s *Session) connectFailed(req wire.Request, err error) {
	if errors.Is(err, queue.ErrStale) { // a later connect of the same client was bound first
		s.close(wire.CloseSuperseded, "the client connected elsewhere", 0)
		return
	}
	refusal := s.m.refusal(connectError(err))
	if errors.Is(err, registry.ErrTooManyClients) {
		s.m.opts.Metrics.Refused("user_connections")
	}
	s.refuse(req.Ref, refusal)
	switch refusal.Code {
	case wire.Unauthorized:
		s.notifyRejected(req.Token, err)
		if errors.Is(err, ErrExpired) {
			s.close(wire.CloseExpired, "the token ran out", 0)
			return
		}
		s.close(wire.CloseUnauthorized, refusal.Message, 0)
	case wire.Unavailable, wire.RateLimited:
		s.close(wire.CloseOverloaded, refusal.Message, 500+rand.Int64N(4500))
	default:
		s.close(wire.CloseUnauthorized, refusal.Message, 0)
	}
}

// connectError returns the error that the client receives for err.
func connectError(err error) error {
	switch {
	case errors.Is(err, ErrExpired):
		return wire.Errorf(wire.Unauthorized, "token: it ran out")
	case errors.Is(err, registry.ErrTooManyClients):
		return wire.Errorf(wire.RateLimited, "the user has as many clients online as are allowed")
	}
	return err
}
