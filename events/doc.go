// Package events tells the backend what happened: that a user came or went, that a channel has subscribers or
// has none any more, that a message was not acknowledged in time. Nothing here depends on the process that saw
// it: a [Recorder] only notes in the store that something should be looked at, and any [Dispatcher], in
// whichever janitor, looks, decides, and sends. [Store] is the contract; [Redis] shares it between processes,
// [Memory] serves one.
//
// # The way of an event
//
// Behind each change of a user in the registry, whatever it was and wherever it was made,
// [Recorder.UsersChanged] is
// called: package noting does so, and brokers and janitors know nothing of it. That puts the user on the due
// list: for now if the backend believes him offline, in [Grace] if it believes him online, so that a reconnect
// is no event. [Dispatcher.DueRound] claims what is due, asks the registry for the truth, and settles: one
// script compares that with what was told last and, where they differ, notes the new state and appends the
// event. So what several instances saw is told once, and who is told offline is offline by the registry and not
// by the memory of one process. Channels go the same way. A watched message is due once, and makes an event
// unless somebody has acknowledged it.
//
// A claim is a time until which nobody else takes the entry, and that time is its fence: it is not settled when
// the entry was touched since, by another change or by another process that claimed it later. So a janitor that
// died leaves its claims to the next, and one that slept does not tell what was true before.
//
// What no process noted, because it was killed between the change and the note, is found by
// [Dispatcher.SweepRound]: it walks over all that is told present, a page at a time, and puts on the due list
// who is not.
//
// # Order and repeats
//
// Users, channels and clients are spread over [Shards] by name. A shard has one list of events, sent from its
// head by one process at a time: it holds a short lease, whose number fences what it does to the list. An event
// leaves the list when the endpoint has taken it. So events of one user are in order, each comes once at least,
// and again under the same id when an answer was lost or a janitor was killed while it sent. What cannot be
// sent for MaxAge, what the endpoint refuses for its content, and what the list has no room for goes to the
// dead letters, oldest first.
//
// # Keys
//
// Braces are literal: they are hash tags, so that each shard is in one slot of a Redis Cluster. Options.Prefix
// stands before every key. All expire Retention after the last write.
//
//	key             type  holds                                          bounded by
//	ev_due_{evN}    ZSET  u:<user>, c:<channel>, d:<watch>, score when   100,000 entries, then ErrFull
//	                      to look, Unix ms
//	ev_told_{evN}   HASH  u:<user>, c:<channel> → since when, Unix ms;   who is online, SweepRound
//	                      present by what was told last
//	ev_watch_{evN}  HASH  d:<watch> → user, clients, ids, data           its due entry; 32 MiB, then ErrFull
//	ev_out_{evN}    LIST  <place>:<event>, oldest first                  delivery; 10,000 events, 16 MiB, then the dead letters
//	ev_dead_{evN}   LIST  <reason>:<Unix ms>:<event>, oldest first       1000 events, 4 MiB, then the oldest go
//	ev_m_{evN}      HASH  last, fence, until, attempts, retry_at,        its nine fields
//	                      out_bytes, dead_bytes, watch_bytes, dropped
package events
