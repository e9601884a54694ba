// Package wire is the language of the session: the requests of clients, the events of the broker,
// the rules for names, and the codes of errors and closings. A dialect (package broker/dialect)
// encodes them on a connection. The JSON tags are those of the native dialect, docs/protocol.md.
package wire
