package main

import "fmt"

// stateHeading introduces the table about channel state.
const stateHeading = `
## Channel state

Some of the channels have a [state](state.md), and most of the clients over sockets, in Go and in JavaScript, follow one. In each of these channels but one, some
clients and a backend change the state: they claim seats of a group with a limit, count within bounds, replace documents under compare-and-set, and
set and renew short leases. The last channel is quiet: there only a server that sweeps the state can publish the end of a lease.
Each follower in Go owns a field. In the end, the fields of each follower are compared with those of the store, and all answers with the log.

`

// stateColumns are the columns of the table about channel state.
var stateColumns = []column{
	{"fault", "", func(r row) string { return r.Fault }},
	{"updates", "accepted updates", func(r row) string { return fmt.Sprint(r.Updates) }},
	{"refusals", "updates that the state refused: a condition, a limit or a bound was not met", func(r row) string { return fmt.Sprint(r.Refusals) }},
	{"lost", "of updates: not in the log in the end", func(r row) string { return fmt.Sprint(r.LostChanges) }},
	{"durable lost", "the same, of the durable updates, by the backend and by clients; they are durable only if the pushes are", func(r row) string { return fmt.Sprintf("%d of %d", r.LostDurable, r.Durable) }},
	{"ended early", "fields that ended before their time, or because their owner had left although it was connected", func(r row) string { return fmt.Sprint(r.EndedEarly) }},
	{"missed", "changes that a follower did not receive, and that neither new pages nor a gap declared", func(r row) string { return fmt.Sprint(r.MissedChanges) }},
	{"JavaScript", "changes by accepted updates that the followers with [client/js](../client/js/README.md) received, of those they had to learn of; pages after a reconnect, and gaps, declare the others", func(r row) string { return fmt.Sprintf("%d of %d", r.ChangesInJS, r.DueInJS) }},
	{"diverged", "fields of followers that differed from the store's in the end", func(r row) string { return fmt.Sprint(r.Diverged) }},
	{"oversold", "groups above their limit, and counters out of their bounds, at any id of the log or in what a follower held", func(r row) string { return fmt.Sprint(r.Oversold) }},
	{"ghost fields", "fields that were shown although their lease or their owner had ended; fields of an owner that died with its broker and that were not away in time, or did not end after the grace period", func(r row) string { return fmt.Sprint(r.GhostFields) }},
	{"wrong conflicts", "refusals whose fields are no reason for them or contradict the log, and accepted updates whose conditions or results contradict it", func(r row) string { return fmt.Sprint(r.WrongConflicts) }},
	{"expiries", "leases that ended", func(r row) string { return fmt.Sprint(r.Expiries) }},
	{"late", "of expiries: published more than 4 s after the end, not counting times of half a second or more without an accepted push", func(r row) string { return fmt.Sprint(r.Late) }},
	{"late p50", "time from the end of a lease until the first follower received it, median", func(r row) string { return millis(r.LateP50) }},
	{"late max", "the same, longest", func(r row) string { return millis(r.LateMax) }},
	{"away max", "longest time from the death of a broker until a follower knew that the fields of its lost clients were away", func(r row) string { return seconds(r.AwayMax) }},
	{"", "ok or RED, for messages, presence and state", row.verdict},
}
