// Package events sends events to the backend: a user came online or went offline, a channel got its
// first subscriber or lost its last one, a message was not acknowledged in time, fields of a
// channel's state ended.
//
// No event depends on the process that saw the change. A [Recorder] only schedules a check in the
// store. Any [Dispatcher], in any janitor, makes the check, creates the event and sends it. [Store]
// is the contract of the stores. [Redis] is shared by processes, [Memory] serves one process.
//
// # The way of an event
//
// Package recording wraps the registry and calls [Recorder.UsersChanged] after each change of a
// user's bindings. So the code that changes bindings does not know of events. The call puts the
// user on the due list. The check is due now if the user was last reported offline, and after
// [Grace] if the user was last reported online. So a reconnect makes no event.
//
// [Dispatcher.DueRound] claims the due entries, asks the registry for the current state and settles
// each claim. One script compares the current state with the reported one. If they differ, it
// stores the new state as reported and appends an event to the outbox. So a change that several
// instances saw makes one event, and the registry, not the memory of a process, decides that a user
// is offline. Channels are handled in the same way. A message with an acknowledgement deadline is
// checked once, at its deadline. It makes an event unless a client has acknowledged it.
//
// A claim sets the time at which the entry is due again. That time is also the claim's fencing
// token: a claim cannot be settled after another change or a later claim has set another time. So
// the claims of a killed janitor pass to the next one, and a janitor that was suspended does not
// report an old state.
//
// A process that is killed after a change and before the call to the Recorder schedules no check.
// [Dispatcher.SweepRound] finds such changes: it walks over all entries that are reported present,
// page by page, and schedules a check of those that are not present.
//
// # Fields that end
//
// A field ends by itself: its lease expires, its owners leave, or the whole state was not written
// for its keeping time. A message in the channel's log then lists it. Whichever process notices the
// end appends that message: a server with subscribers, the next update, the janitor, or the check
// below.
//
// A broker calls [Recorder.TrackFields] before it updates a channel's state, and
// [Recorder.FieldsDue] after it, with the earliest end. A janitor calls FieldsDue after it ended
// the owners of a dead server. Package recording omits calls that change nothing.
// [Dispatcher.DueRound] claims the entry, removes the fields that have ended, and reads the log
// after the reported position. Each message about fields that ended becomes an event, whose id is
// made of the channel and the id of the message. [Store.SettleFields] appends the events and moves
// the reported position. The position is the fencing token: if two processes check a channel, one
// of them changes nothing.
//
// [Options].Translate may make other events of the messages of a channel: those of a system that
// keeps the channel, such as hold_expired.
//
// So a message makes one event, whichever process has written it, if a check follows.
// [Dispatcher.SweepRound] schedules the checks that are missing: it walks over the tracked channels
// and compares their logs and states with what was reported. The tracking ends when a channel had
// no fields for a while. A message is missed only if the log has dropped it before the check.
//
// # Order and repeats
//
// Users, channels and clients are spread over [Shards] by name. A shard has one outbox. One process
// at a time sends from its head. It holds a short lease. The number of the lease is the fencing
// token of every change to the outbox. An event leaves the outbox after the endpoint has accepted
// it. So the events of one user are in order, and each arrives at least once. An event arrives
// again, under the same id, if an answer was lost or a janitor was killed while it sent.
//
// An event moves to the dead letters if it could not be sent for MaxAge, if the endpoint refused
// its content, or if it is the oldest of a full outbox.
//
// # Keys
//
// Braces are literal: they are hash tags, so that each shard is in one slot of a Redis Cluster.
// StoreOptions.Prefix precedes every key. All keys expire Retention after the last write.
//
//	key             type  holds                                 limit
//	ev_due_{evN}    ZSET  u:<user>, c:<channel>, d:<deadline>,  100,000 entries, then ErrFull
//	                      f:<channel>; score: time of the
//	                      check, Unix ms
//	ev_told_{evN}   HASH  u:<user>, c:<channel> → time of the   the number of users and channels
//	                      report, Unix ms: the users and        that are present; SweepRound
//	                      channels last reported present
//	ev_fields_{evN} HASH  f:<channel> → <reported id> <time of  50,000 tracked channels, then
//	                      the last TrackFields or event, ms>    ErrFull
//	                      <1 if without fields>
//	ev_watch_{evN}  HASH  d:<deadline> → user, clients, ids,    one due entry each; 32 MiB,
//	                      data                                  then ErrFull
//	ev_out_{evN}    LIST  <seq>:<event>, oldest first: the      10,000 events, 16 MiB; then the
//	                      outbox                                oldest become dead letters
//	ev_dead_{evN}   LIST  <reason>:<Unix ms>:<event>, oldest    1000 events, 4 MiB; then the
//	                      first                                 oldest are dropped
//	ev_m_{evN}      HASH  last, fence, until, attempts,         nine fields
//	                      retry_at, out_bytes, dead_bytes,
//	                      watch_bytes, dropped
//
// # Files
//
// Files in reading order: sweep.go, send.go, memory_outbox.go, redis_outbox.go, backlog.go,
// due.go, due_fields.go, translate.go, dispatcher.go, memory_fields.go, memory.go, metrics.go,
// redis_fields.go, redis_due.go, fields.go, recorder.go, event.go, redis.go, keys.go, store.go,
// answer.go, options.go.
package events
