// Package hub delivers channel messages to the subscribers on this server.
//
// Each [Channel] has a tail: a bounded number of its newest messages, already encoded. Hints append
// to the tail. If messages are missing there, a drain reads them from the store and appends them;
// at most one drain per channel runs at a time. Each event loop that has subscribers then runs one
// task, which writes to each subscriber the messages after its cursor. A subscriber whose socket is
// backed up keeps only its cursor. When the socket is writable again, the subscriber continues from
// the tail, or from the store if the tail does not reach back to the cursor.
package hub
