// Package client is the Go client of Switchboard: one logical connection to a broker,
// over WebSocket (ws://host/ws, wss://host/ws) or raw TCP (tcp://host:port), that is kept
// up by [Client.Run] until its context ends or the broker says not to come back.
//
// What a caller may rely on:
//
//   - Callbacks run one after another on one goroutine, in the order of arrival. They may
//     call any method of the Client.
//   - After a reconnect every channel goes on from the last id that was seen, and an id that
//     was seen is not delivered again. What could not be recovered is told by OnGap.
//   - A message of the client queue is acknowledged when OnMessage has returned, so a crash
//     before that brings it again.
//   - Publish is never repeated behind the caller's back: see [ErrUnknownOutcome].
//
// How it is built: Run drives one connection at a time (session.go) with a reader and a
// writer; the reader hands messages over to an inbox (inbox.go) which outlives connections
// and which one goroutine empties into the callbacks (deliver.go). The inbox is bounded in
// bytes; when it is full nothing more is read, and the broker keeps a cursor for us.
package client
