// Package session is the protocol state of client connections. It is the same for every transport.
//
// A [Session] is one connection. It belongs to the connection's event loop and is used only there,
// without locks. Calls to the store and to hooks run in a pool. A session has one such call under
// way at a time, so a client's messages are handled in the order in which they came. The result of
// a call comes back as a task of the loop. The [Manager] knows all sessions of the process, and a
// shard those of one loop.
//
// Where to find what:
//
//   - session.go receives messages, starts their handlers, and ends a session. waiting.go holds
//     the messages that come while a call is under way.
//   - connect.go lists the steps of a connect. identity.go, hooks.go and refresh.go establish the
//     client's identity. connector.go, connect_queue.go and early_subscribe.go bind many clients
//     with few store calls.
//   - revoke.go refuses revoked tokens, and closes the sessions that used them.
//   - binding.go, unbind.go, renew.go and unconfirmed.go keep the bindings in the store.
//     client_locks.go serializes the calls about a client. local_clients.go and client_table.go
//     find a client's session.
//   - subscribe.go, publish.go, history.go, presence.go, watches.go and worker_requests.go handle
//     the messages of those types. acquire.go prepares a subscription, and subscriptions.go lists
//     those of a session.
//   - permissions.go checks the access rules, and recheck.go applies new ones. rates.go holds the
//     rate limits of a connection and their use; message_rate.go applies them. stored.go limits
//     what a user or an address stores.
//   - state_publish.go, state_subscribe.go and state_read.go handle publish, subscribe and state
//     messages about the state of a channel. state_pages.go writes the pages of a state.
//     state_owner.go stores whether the owners of fields are connected. state_use.go keeps the
//     unwritten pages and the ownerships of a session. here.go sets here values.
//   - inbox.go delivers the client's own queue and takes acknowledgements, which ack_batch.go
//     stores.
//   - schedule.go checks the timeouts of sessions. renewal_schedule.go decides when a binding is
//     renewed. send.go writes to the connection.
package session
