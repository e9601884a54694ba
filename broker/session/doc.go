// Package session is the protocol state of client connections. It is the same for every transport.
//
// A [Session] is one connection. It belongs to the connection's event loop and is used only there,
// without locks. Calls to the store and to hooks run in a pool. A session has one such call under
// way at a time, so a client's messages are handled in the order in which they came. The result of
// a call comes back as a task of the loop. The [Manager] knows all sessions of the process, and a
// shard those of one loop.
//
// Package binding binds the clients in the store. Locks: the mutexes of localClients, owners,
// ownership and connectQueue guard only their fields. docs/design.md has the order of all locks.
//
// Files in reading order; a file uses the files after it, with few exceptions, which a test
// counts:
//
// What the rest of the broker calls, and what a connection calls:
//   - manager.go accepts connections, passes hints and calls of the backend on to sessions.
//   - schedule.go checks the timeouts of sessions and begins the renewals of their bindings.
//   - receive.go takes messages and dispatches them. Messages wait while a call is under way.
//
// The life of a connection:
//   - connector.go binds many clients with few store calls.
//   - connect.go lists the steps of a connect, and opens the session.
//   - acknowledge.go takes acknowledgements that come through the API.
//   - revoke.go closes the sessions that used revoked tokens.
//   - refresh.go applies new tokens and new access rules.
//
// The handlers of messages:
//   - methods_own.go changes states for methods whose fields belong to the client.
//   - backend_subscribe.go begins subscriptions that the backend has made.
//   - subscribe.go begins and ends subscriptions.
//   - presence.go reads and watches presence, and sets here values.
//   - state_subscribe.go subscribes to the state of a channel and writes its pages.
//   - acquire.go prepares a subscription, in the pool, and answers it.
//   - requests.go sends requests to the backend and calls methods.
//   - history.go reads the messages and the state of a channel.
//   - publish.go stores messages and changes states.
//
// What the handlers use:
//   - renew.go renews bindings, and makes them again after a failure of the store.
//   - backend_lists.go reads the lists of the subscriptions that the backend has made.
//   - call.go runs store calls in the pool.
//   - compare.go finds sessions that missed hints.
//   - inbox.go delivers the client's own queue and takes acknowledgements.
//   - identity.go checks tokens and gives clients their ids.
//   - backend_decide.go decides which subscriptions the backend's lists and claims make.
//   - message_rate.go applies the rates of a connection and charges what messages read.
//   - rates.go holds the rates and the limits of what a user or an address stores.
//   - send.go writes to the connection.
//   - hooks.go calls the hooks and authorizers.
//   - end.go ends a session.
//   - state_owner.go stores whether the owners of fields are connected.
//   - subscriptions.go lists the subscriptions and watches of a session.
//
// What a session, a loop and the Manager hold:
//   - session.go has Session and Manager.
//   - permissions.go checks the access rules.
//   - connect_job.go has a connect under way, and the queue of those that wait.
//   - shard.go has the sessions of a loop, and when each is checked.
//   - state_use.go has the unwritten pages and the ownerships of a session.
//   - clients.go has the clients of this server and their sessions.
//   - options.go has the options, and the interfaces of what sessions call.
//   - extra.go has the state that an idle session does not need.
package session
