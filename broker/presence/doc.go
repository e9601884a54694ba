// Package presence knows who is in the channels. It writes into the store who comes and goes on this server, and follows,
// for those of its clients that asked, what happens in a channel on all servers.
//
// Each server keeps one roster per channel in the store, and only that server writes it. A client's presence is
// the union of the rosters of live servers, so that the clients of a dead one are gone with its lease, whoever asks.
//
// Join and leave are no messages: nothing stores them. A server with clients that want to know keeps a view of the
// channel, the rosters with their versions, and what it tells is the difference that each change makes to its view. Changes
// come as hints, which may be lost; a version that does not follow on the last one, a missed hint or a
// store that failed over has the roster read again, and the difference told is then that of all that was missed. So
// nobody is told twice that a client came, and nobody is never told that it went.
package presence
