// Package broker is one server: it connects the transports, the sessions, the hub, the delivery of
// pushes, the HTTP API and the links to other servers.
//
// What clients send: transport.pollerConn.read cuts the bytes of a socket into units (lines or
// frames), and the codec of the connection's dialect decodes them. Connections with compression
// or TLS come through transport.webConn.readLoop instead. session.Session.Receive handles the
// requests, whatever the dialect. A connection begins with session.Manager.Accept.
//
// The life of a message to a channel; a test checks that the functions named here exist:
//
//  1. A push arrives at POST /v1/push. api.API.Push serves the connections that package fastpush
//     has taken over, and net/http the others. Either way the call is authorized, and api.api.push
//     checks the push.
//  2. delivery.Pusher.ToChannel stores the message with queue.Redis.AppendChannel. The same round
//     trip reads the owners: the servers with subscribers. From here on the push is accepted.
//  3. Each owner receives a hint. peer.Links.Send sends it to another server, where
//     peer.Links.handle receives it, and member.Member.Hint acts on it. If this server is an owner,
//     member.Member.LocalHint does, which gets a client's message as it was before it was encoded.
//  4. On an owner, hub.Channel.Hint appends the message to the channel's tail if it follows the
//     tail's last message. Otherwise hub.Channel.drain reads the messages after the tail from the
//     store.
//  5. hub.Channel.wake posts a task to each event loop with subscribers of the channel. There
//     hub.Channel.deliver writes to each subscriber the messages after its cursor, through
//     session.Session.Write and transport.pollerConn.Write. dialect.Batch.Bytes encodes a message
//     once for all connections that take the same form.
//  6. A subscriber whose socket is full keeps its cursor. When the socket is writable again,
//     session.Session.Writable calls hub.Subscription.Resume, which writes what is missing.
//
// A message may have members besides its data, such as its author. CONTRIBUTING.md lists the places
// that know a member.
//
// A change of the state of a channel takes the same path: it is a message whose data is an entry,
// and only subscribers that see the state receive the changes in it.
//
//  1. A publish with changes arrives at session.Session.publishChange, which checks it and builds
//     the update. api.api.update does so for a push. Both call package fields.
//  2. delivery.Pusher.ToChannel stores it as in step 2 above. The script checks conditions and
//     limits, removes fields that are due, and appends one entry. The hint carries the entry.
//  3. On an owner, hub.Channel.entry decodes the entry. hub.Channel.appendShown finds or makes the
//     part that each kind of subscriber sees, in dialect.Message.Shown.
//  4. A client that subscribes with the state first receives pages: session.Manager.prepareState
//     gets them from snapshot.Snapshots.Pages, and session.Session.startPages writes them. The
//     subscription begins after the last page. snapshot.view.Append keeps the fields up to date.
//  5. Fields that end: snapshot.view.sweep removes them on time, through
//     delivery.Pusher.StepStates. Without subscribers, the next change or the janitor does so.
//  6. Fields that a client owns: session.Session.endStateUse and session.owners.store report the
//     end of the connection, session.owners.storeBack its return. After a server is declared dead,
//     session.Manager.RestoreOwners does so for all of its clients.
//
// A message to a client: delivery.Pusher.ToClient stores it in the client's queue and sends a hint
// to the one server that holds the client. There session.inbox.hint writes the message if it
// follows the last one written. Otherwise session.inbox.read reads the client's queue.
//
// Hints may be lost. peer.Links.Doubts reports when that may have happened, and member.Member.Sweep
// then compares all queues with the store: hub.Hub.Compare and session.Manager.Compare read those
// in which something is new. presence.Presence.Compare does so with what the doubted servers have.
// At the end of a server member.Member.Goodbye announces that no more hints follow.
//
// The store may lose bindings and messages at a restart or failover. member.Member.rebind then
// compares what this server holds in the slots of the failure, and binds and reads what differs.
// delivery.Pusher.Confirm finds lost messages.
//
// # Files
//
// Files in reading order: run.go, listeners.go, http.go, parts.go, streams.go,
// openfiles_unix.go, stats.go, access.go, metrics.go, online.go, hosts.go, operator.go,
// origins.go, extensions.go, confirm.go, certificates.go, broker.go, membership.go, options.go,
// address.go, openfiles_windows.go, stores.go, validate.go, server.go.
package broker
