// Package hub delivers channel messages to the subscribers on this server.
//
// Each [Channel] has a tail: a bounded number of its newest messages, already encoded. Hints append
// to the tail. If messages are missing there, a drain reads them from the store and appends them;
// at most one drain per channel runs at a time. Each event loop that has subscribers then runs one
// task, which writes to each subscriber the messages after its cursor. A subscriber whose socket is
// backed up keeps only its cursor. When the socket is writable again, the subscriber continues from
// the tail, or from the store if the tail does not reach back to the cursor.
//
// A subscription may see the state of the channel, see [Hub.SubscribeState]. Then it receives the
// part of each change that its filter shows. Subscriptions with the same filter share the encoding.
// A subscription without the state receives only data. The cursor also moves past messages that the
// subscriber does not receive.
//
// # Files
//
// Files in reading order: rebind.go, prefetch.go, housekeeping.go, bind.go, compare.go,
// deliver.go, states.go, hub.go, positions.go, erase.go, resume_id.go, watch.go, channel.go,
// subscription.go, tail.go.
package hub
