// Package wire is the protocol between client and broker: the messages, their JSON
// codec, the names' rules, and the codes of errors and closes. One JSON object is
// one message; on WebSocket it is one text frame, on raw TCP one line.
//
// A message to clients is encoded once ([Frame]), however many sockets it goes to.
package wire
