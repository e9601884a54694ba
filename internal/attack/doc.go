// Package attack tests that a broker keeps serving while it is attacked. The broker is a process of
// its own with a real Redis. The test process holds the attackers.
//
// During each attack, honest clients on every transport except Server-Sent Events and a backend
// exchange messages all the time. They check that each message reaches each client once and in
// order, and that their connections stay open. During and after the attack, new clients must be
// able to connect. At the end, the broker must still run, must have stayed below its memory bound,
// and must have given the attackers the errors and close codes of the protocol.
//
//	scenario_test.go     the checks that run with each attack
//	broker_test.go       the broker process: settings, API calls, memory and descriptors
//	issuer_test.go       the signer of the users' tokens
//	traffic_test.go      the honest clients; client_test.go, transport_test.go: one of them
//	attacker_test.go     an attacker's connection, and how the broker ends it
//	suite_test.go        the table of the attacks
//	identity_test.go     theft of client ids
//	connections_test.go  connection limits
//	rebinding_test.go    attacks by web pages on a broker without authentication
//	tls_test.go          attacks on TLS and on the broker's own HTTP calls
//	cost_test.go         what the costliest messages cost; costhttp_test.go: calls over HTTP;
//	                     costdata_test.go: over which data
//	reads_test.go        messages that make the store read much, from many connections
//	rapidreset_test.go   streams of HTTP/2 that are reset at once
//
// The other files contain the attacks by kind.
package attack
