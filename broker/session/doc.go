// Package session is the state machine of one client connection, the same over every
// transport: connect, subscriptions, publishing, requests, and the client's own queue
// with its window and acknowledgements.
//
// A [Session] lives on its connection's event loop and is touched only there. What needs the
// store runs in the pool, one call of a session at a time, so that a client's messages are
// acted on in the order in which they came; its result comes back as a task of the loop.
// The [Manager] knows all sessions of the process and keeps their bindings in the store.
package session
