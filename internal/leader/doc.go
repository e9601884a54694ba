// Package leader lets one of several processes make the rounds of all. The rounds of one kind have
// a lease in Redis. Only the process that has it, the leader, makes them; the others look every two
// seconds whether it is free, with one command for all kinds.
//
// A leader renews its leases every two seconds. When it is killed, they end after five seconds, and
// another process follows at its next look. A leader that ends as planned, or whose rounds have
// failed three times in a row, gives them back at once.
//
// After a failover that has lost a lease, both the old and the new leader make rounds for a moment.
// So rounds must be harmless to repeat, and to make twice at the same time. The lease only saves
// commands.
//
// A leader that cannot keep up asks for help: until it keeps up again, all processes make rounds. A
// process that has not reached Redis for 15 seconds makes rounds, too: in a Cluster, only the
// master with the leases may be dead.
package leader
