// Package redispipe sends Redis commands and scripts of many goroutines in shared
// round trips: those who call at the same time go together, and while as many pipelines
// are in flight as may be the next one gathers. A caller blocks until its own command has
// been answered.
//
// A [Group] is a script that works through many targets: those of concurrent calls are one
// run. In a Cluster each is a run of its own.
//
// A [Coalescer] is for work of several commands or steps: calls for single names that arrive while
// one is under way share the next.
//
// A durable call is answered when a replica has what it wrote. Such calls share round
// trips of their own, so that nobody else waits for replicas.
//
// A [Script] is a .lua file beside its caller, loaded once per server and run by
// its digest; a server that does not know it (restarted, failed over, a new
// Cluster node) gets its text with the same call.
package redispipe
