// Package linear holds only tests: they check that the state of a channel is linearizable. Eight
// or nine concurrent clients change and read the state. Every call behaves as if it happened at one
// moment between its begin and its end, alone, on one map of fields.
//
// # Method
//
// The clients record the begin, the end and the answer of every call. Package porcupine then
// searches an order of the calls that agrees with their begins and ends, and in which every answer
// is the one that the model gives. The model, see step, is one map, written without package state.
// It knows conditions, claims, additions with bounds, touches, leases, parents, owners, limits of
// groups, of fields, of owned fields and of bytes, idempotency keys, messages without fields,
// sweeps, and pages. The ends and returns of owners and servers are calls of their own.
//
// # Time
//
// The id of an entry contains the store's time, and a page has the store's clock. So the model
// decides exactly which fields are due at a change or in a page. A refusal without an entry has no
// time: the model only knows that no field was due.
//
// # Calls without an answer
//
// A call without an answer may or may not have happened. Each update has a number in the data of
// its message, so the log shows whether it was applied, and under which id. If it was, the call may
// have happened at any time after its begin. Otherwise it is not part of the history. A refused
// update may have left an entry of expired fields; such an entry counts as a sweep.
//
// The entry of an owner's end has no number. If such a call has no answer, the model tries it for
// each entry that no other call has appended. The call may also have happened without an entry.
//
// # Brokers
//
// TestBrokers checks histories over three broker processes, of which one is killed and starts
// again. Backends call the HTTP API, and clients of package client publish over their sockets. They
// are under the rules of a namespace with claims, limits, parents and owned fields. Answers of
// brokers have neither the id before an entry nor the store's clock. The log of the store has the
// first, and the model takes the earliest clock at which a page can be as it is. The brokers store
// the ends and returns of owners. Each field has one owner at most, so the entry of an end names
// its owner.
//
// # Failover
//
// A failover of a Sentinel setup or of a Cluster may lose the newest entries of the log, and with
// them their updates. The test reads them from the append-only file of the killed master. The
// history then has one more call, the loss: it takes the model back to the last entry that was
// kept. No entry may be missing below that one, no update that was durable and acknowledged may be
// lost, and no id that was lost may return.
//
// # The log
//
// After each run the log is folded: its fold at the id of each page must have the page's fields,
// and no group may ever be above its limit.
//
// # Use
//
//	go test ./internal/linear                                  a few histories in memory
//	go test -tags long ./internal/linear                       all tests
//	go test ./internal/linear -run TestMemory -seeds=5000      a longer search
//	go test -tags long ./internal/linear -run 'Redis|Cluster' -redisseeds=200
//	go test -tags long ./internal/linear -run Brokers -brokerseeds=100
package linear
