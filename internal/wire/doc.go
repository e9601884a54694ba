// Package wire defines what a client and the broker exchange: the requests of clients, the events
// of the broker, the rules for names, and the codes of errors and of closed connections. A dialect
// (package broker/dialect) encodes requests and events on a connection. The JSON tags are those of
// the native dialect, see docs/protocol.md.
package wire
