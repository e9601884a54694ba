// Package tlsrecord is the record layer of TLS 1.3 for servers, in 300 bytes per connection.
// crypto/tls makes the handshake, and [Accept] takes the connection over from it. Then a [Layer]
// protects what is sent, and opens what is received. It has no buffers, no goroutine and no
// pointers: it is for servers with very many connections that are idle most of the time.
//
// Sections and appendices are those of RFC 8446. Files in reading order:
//
//	suite.go      the cipher suites (B.4) and the derivation of keys (7.1 and 7.3)
//	half.go       the keys and the record number of one direction (5.3)
//	ciphers.go    the ciphers of the busiest connections
//	layer.go      Layer: sealing records (5.1, 5.2)
//	open.go       opening them
//	messages.go   KeyUpdate (4.6.3) and alerts (6)
//	keys.go       the secrets that crypto/tls writes to its key log
//	tap.go        what lies between crypto/tls and the socket during the handshake
//	accept.go     Accept, and the proof that the takeover goes on where crypto/tls ended
//	conn.go       Conn: a Layer as a net.Conn
//
// What it relies on, and why it is safe:
//
//   - A nonce is never used twice. Only half.nextNonce makes nonces: it counts, and fails before
//     the number wraps. The first number comes from Accept, which tries each record that crypto/tls
//     has sent: those that the new key opens are counted.
//   - A record that does not authenticate ends the connection. Before that, only its type and its
//     length are looked at, which decide no more than how many bytes to wait for.
//   - What is illegal after a handshake ends the connection with the alert that the RFC names.
//   - Keys are in no log, and the environment variable SSLKEYLOGFILE has no effect. [Layer.Wipe]
//     overwrites them. This is not complete: crypto/tls keeps copies until they are collected.
package tlsrecord
