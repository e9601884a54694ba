// Package client is the Go client of Switchboard: one logical connection to a broker, over
// WebSocket (ws://host/ws, wss://host/ws) or raw TCP (tcp://host:port). [Client.Run] reconnects
// until its context ends or the broker forbids it. While one of several URLs is silent, it tries
// the next one, too; docs/protocol.md has the delays under Reconnecting.
//
// Guarantees:
//
//   - The callbacks in [Options] run one after another, in the order of arrival. They may call any
//     method of the Client.
//   - After a reconnect every channel resumes from the last id seen, and no id is delivered twice.
//     OnGap reports messages that could not be recovered.
//   - With [SubscribeOptions.Load], the application reads its own data, from a database for
//     example. Then exactly the messages of the channel arrive that are not yet in the data.
//   - A message of the client queue is acknowledged after OnMessage returns. If the process dies
//     before that, the message arrives again.
//   - The client never repeats a Publish on its own: see [ErrUnknownOutcome]. It repeats an Update
//     that has a [Key].
//
// # State
//
// A channel can hold a state: fields with a name, a JSON value and the id of the message that set
// it.
//
//   - [Client.Update] changes fields, all of them or none, under conditions. If the fields forbid
//     it, the error is a [*Refusal] with their current values.
//   - [Client.Subscribe] with [SubscribeOptions.State] keeps a copy of the fields. OnFields is
//     called when it is complete. After that, each message brings its changes in [Message.Changes].
//   - [Client.Fields] returns the copy. In OnMessage and OnFields it is the state after the message
//     or the fields that the call is about.
//   - [Client.ReadFields] and [Client.FieldsPages] read fields without a subscription.
//
// After a reconnect, the client receives the changes that it has missed, in messages. If the broker
// no longer has all of them, all fields arrive again: OnGap is called, then OnFields. In between,
// and without a connection, Fields returns the last complete copy.
//
// A client can own fields, see [Own]. They end when it leaves and does not return within the grace
// period. If it returns in time, it still owns them, with the same values and ids, and need not set
// them again; other clients see [Changes] with Away and then Back. If it returns too late, it sees
// the fields in Changes.Gone with [GoneLeft], or misses them in OnFields, and may set them again.
//
// A client can show a value that is never stored to the others in a channel, such as the position
// of a cursor: see [Client.ShowHere] and OnHere.
//
// # Implementation
//
// Run makes attempts at all URLs (dialer.go), and serves one connection at a time (session.go),
// with a reader and a writer. The reader puts messages into an inbox (inbox.go), which outlives
// connections. One goroutine takes them out and calls the callbacks (deliver.go). The inbox is
// bounded in bytes. When it is full, the reader stops, and the broker sends the rest later.
// The reader decides whether the fields of a channel are complete (pages.go). The copy of them
// changes when their messages leave the inbox (view.go).
//
// # Files
//
// Files in reading order: event.go, api.go, token.go, line.go, load.go, dialer.go, subscribe.go,
// session.go, members.go, pages.go, refusal.go, update.go, socket.go, deliver.go, read.go,
// client.go, backoff.go, call.go, inbox.go, view.go, errors.go, dial.go, options.go, fields.go,
// presence.go.
package client
