// Package attack tests that a broker stands while it is attacked. The broker is a process of its own, with a real Redis;
// the attackers are this one. Beside every attack a crowd of well-behaved clients, one for each way in, and a backend
// exchange messages without a pause, and check that each arrives at each of them once and in order, over the
// connections that they began with. While an attack is at its height newcomers must come in, and in the end
// the process must have lived, within bounded memory, and have told the attackers what the protocol promises.
//
//	siege_test.go       what is demanded beside each attack
//	victim_test.go      the broker: its settings, its process, what it uses
//	issuer_test.go      who signs the users' tokens
//	crowd_test.go       the well-behaved; member_test.go, way_test.go: one of them, and how they come in
//	assailant_test.go   an attacker's connection, and how the broker ends it
//	attacks_test.go     the table of the attacks
//	identity_test.go    thieves of client ids, and a broker that lets in who has no token
//	crowded_test.go     those that need a broker with other settings
//	rebinding_test.go   those by web pages, on a broker that is open
//	tls_test.go         those on TLS, and on what the broker calls
//	forged_test.go …    the attacks, by kind
package attack
