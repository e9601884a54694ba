// Package hub fans messages of channels out to the connections of this server.
//
// A [Channel] has a tail, a short ring of its newest messages, encoded. Hints and drains
// extend the tail; each event loop with subscribers then gets one task, which walks its
// subscribers and writes what is behind their cursors. A subscriber whose socket is backed up
// keeps its cursor and nothing else; when the socket is writable it continues from the
// tail, or from the store. One drainer at a time reads the store for a channel.
package hub
