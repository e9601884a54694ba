// Package client is the Go client of Switchboard: one logical connection to a broker, over
// WebSocket (ws://host/ws, wss://host/ws) or raw TCP (tcp://host:port). [Client.Run] reconnects
// until its context ends or the broker forbids it.
//
// Guarantees:
//
//   - OnMessage, OnGap, OnState and OnUnsubscribed run one after another, in the order of arrival.
//     They may call any method of the Client.
//   - After a reconnect every channel resumes from the last id seen, and no id is delivered twice.
//     OnGap reports messages that could not be recovered.
//   - A message of the client queue is acknowledged after OnMessage returns. If the process dies
//     before that, the message arrives again.
//   - The client never repeats a Publish on its own: see [ErrUnknownOutcome].
//
// Implementation: Run serves one connection at a time (session.go), with a reader and a writer.
// The reader puts messages into an inbox (inbox.go), which outlives connections. One goroutine
// takes them out and calls the callbacks (deliver.go). The inbox is bounded in bytes. When it is
// full, the reader stops, and the broker keeps this client's position.
package client
