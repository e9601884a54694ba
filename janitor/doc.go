// Package janitor cleans up after dead servers, trims the channels' queues, and creates and sends
// the events for the backend.
//
// A janitor runs in a process of its own, or inside a broker that runs without Redis. All its state
// is in the stores, and each step is conditional and can be repeated. So several janitors can run
// at the same time, and another janitor continues the work of one that is stopped. With
// Options.Leases, one of them makes the rounds over queues and states and those of other packages.
//
// # Servers
//
// A server in s_list without a lease is suspected. It is declared dead if it still has no lease in
// the next round and its address does not answer with its id. A server that is declared dead can
// never use its id again. The janitor then removes its bindings in chunks, channels first, then
// clients, and finally the server itself. Until then the server stays in s_list, so that the next
// round finds unfinished work.
//
// A server that answers but does not renew its lease cannot reach the store. Other servers cannot
// reach its clients, so the janitor declares it dead after Options.Patience although it answers.
//
// # Queues
//
// Each channel in the list of channels is trimmed. A server that is neither listed nor leased is
// removed from ch_{channel}. Such a binding remains if a failover has restored it, or if the server
// was killed while it left. A channel without servers is removed from the list.
//
// In a Cluster, the round first moves what servers of a former version have left in ch_list: see
// [registry.Redis.MoveChannelList]. A set of the list that cannot be read does not stop the round.
//
// # States
//
// Before the janitor removes the binding of a dead server to a channel, it records that the
// connections of the server have ended: the fields that only they own become away. A number in the
// entry of each other server of the channel then tells its broker to read the state. A further
// round removes what is due from each state. It is needed for channels without subscribers, since
// the brokers end the fields of the others.
//
// # Other packages
//
// A package whose records can differ, or that has to repeat work, gives checks and rounds to the
// command janitor: see package task. The janitor runs the rounds in Options.Rounds like its own.
// The command runs the checks for `janitor check`, with [CheckStates].
//
// # Events
//
// If Options.Events is set, the janitor creates and sends events: it checks the due entries, sends
// the outboxes, and regularly looks for changes that were not recorded. See package events. The
// changes that the janitor itself makes are recorded if Options.Registry is wrapped by package
// events/recording.
//
// # Files
//
// Files in reading order: servers.go, clean.go, rounds.go, check.go, progress.go, states.go,
// events.go, schedule.go, queues.go, report.go, parallel.go, janitor.go, probe.go, metrics.go.
package janitor
