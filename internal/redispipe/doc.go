// Package redispipe sends Redis commands and scripts of many goroutines in shared round trips.
// Commands of concurrent calls go into one pipeline. While the maximum number of pipelines is in
// flight, the next one collects commands. A caller blocks until its own command has been answered.
//
// A [BatchScript] is a script that handles many targets. The targets of concurrent calls share one
// run of the script. In a Cluster each target is a run of its own. [Pipe.EvalMany] is for a caller
// that has tens of thousands of targets.
//
// A [Coalescer] is for work of several commands or steps. While one call is in flight, it collects
// the names for the next call.
//
// A durable call returns after a replica has what it wrote. Durable calls have round trips of their
// own, so that other calls do not wait for replicas.
//
// The replies to a call count in the Meter of its context, see package meter.
//
// A [Script] is a .lua file beside its caller. It is loaded once per server and runs by its digest.
// A server that does not know the script (restarted, failed over, a new Cluster node) gets the
// source in the same call.
//
// Files, in reading order:
//
//	pipe.go          Pipe, its options, and single commands and scripts
//	call.go          one call, and its caller that waits
//	lane.go          the pipelines in flight, and the calls that wait for the next one
//	script.go        Script
//	reply.go         the replies of scripts
//	batch_script.go  BatchScript, and one run for the targets of concurrent calls
//	many.go          tens of thousands of targets of one caller
//	durable.go       calls that wait for a replica
//	redirect.go      calls that reached the wrong node of a Cluster
//	all.go           commands of one caller
//	keys.go          all keys that match a pattern
//	coalesce.go      Coalescer
//	metered.go       what calls read, for the Meter
package redispipe
