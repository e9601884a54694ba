// Package broker is one instance: transports, sessions, hub, delivery, HTTP API and the
// links to the other instances, wired together.
//
// The life of a message to a channel:
//
//  1. POST /v1/push is checked and authorised: api.New or, read by package fastpush, API.Push; then push in package api.
//  2. It is stored, and then its owners are read, in one round trip: Pusher.ToChannel in
//     package delivery calls queue.Queue.AppendChannel. Only now is the push accepted.
//  3. Each owner gets a hint: Links.Send in package peer for the others, Broker.hint here.
//  4. On the owner Channel.Hint in package hub puts the message into the channel's tail, or
//     marks the channel dirty; then Channel.drain reads what is behind the tail.
//  5. Channel.wake posts one task to each event loop that has subscribers; Channel.deliver
//     walks them and writes what is behind their cursors.
//  6. A backed-up subscriber goes on from its cursor when its socket is writable:
//     Session.Writable, Subscription.Resume.
//
// To a client: Pusher.ToClient, the hint, Session.hint in package session; or, when
// something may be missing, Session.inboxRead, which reads the window of the client's queue.
//
// Hints may be lost. The links tell when that may have happened (Links.Lost), and then
// Broker.sweepLoop has everything read again.
package broker
