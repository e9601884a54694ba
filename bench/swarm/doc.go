// Package swarm is very many subscribers on one goroutine: an epoll loop over plain
// descriptors that opens connections to a server, subscribes each to one channel, and
// checks every delivery. What is said to which server is a [Dialect]. It is made to cost little, because it shares the machine with
// what it measures: a read goes into one buffer for all, a delivery is compared in place, and
// a connection is 40 bytes here.
//
// Nothing runs in the background. Whoever drives a [Swarm] calls [Swarm.Open],
// [Swarm.Until] and [Swarm.Idle], which turn the loop until what they wait for is there.
//
// What is checked: the first connection to receive something new writes its id into the
// channel's ledger, all others must then receive the same id at the same position, and
// at the end the ledger must be the list of ids that the pushes were answered with, or of the numbers
// that they carried. So
// a message that is lost, repeated, changed or out of order anywhere is found, with one counter
// per connection.
package swarm
