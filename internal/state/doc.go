// Package state defines the state of a channel: a map of fields, and the updates that change it.
// It does no I/O. [State.Apply] is the reference for what an update does; package queue runs it in
// memory, and the same rules as scripts in Redis.
//
// # Fields
//
// A field has a name, a JSON value and the id of the change that set it. It may also have
//
//   - a lease: a time at which it expires
//   - owners: clients whose end also ends the field, after a grace period
//   - a holder: the user whose write set it last
//   - a parent: another field, whose end also ends this one
//
// The group of a field is the part of its name up to and including the first slash. Names that
// begin with $ are written by the backend only, and names that begin with $$ are shown to the
// backend only.
//
// # Updates
//
// An [Update] is applied as a whole, under one id, or refused as a whole. The order is:
//
//  1. If the state was not written for its keeping time, all fields are removed: the entry has
//     cleared.
//  2. Fields that are due are removed: the entry lists them in gone. A field is due if its lease or
//     its grace period has ended. Its children end with it, for the same reason.
//  3. An update of a client whose generation is lower than the recorded one, or has ended, is
//     refused. A generation that has ended with its server goes on when another server holds the
//     connection.
//  4. All conditions are checked; the refusal lists every field that does not meet one. Conditions
//     on groups are checked after those on fields.
//  5. The operations are checked one after the other, in the order of the update. If it has a
//     counter, the operation that takes the numbers is the first, and the others get the numbers.
//  6. The limits are checked: owned fields, groups in the order of their first addition, fields,
//     bytes.
//  7. The entry is appended to the channel's log, and the fields are written: first values, leases
//     and parents, then deletions, then Disown, then Own. A part that moves to another parent does
//     therefore not end with the old one.
//
// If a step refuses the update, only the changes of steps 1 and 2 happen, and only they are
// appended.
//
// # The log
//
// Every change is an [Entry] in the channel's log, a message whose data begins with [EntryMark].
// The state is the fold of its log: a [Map] that holds the fields at one id, and that applies the
// entries with higher ids, holds the fields at each later id. Fields that are due but not yet
// removed are the only difference.
//
// # Time
//
// All times are Unix milliseconds on the store's clock.
//
// # Files
//
// Files in reading order: table.go, limits.go, counter.go, apply.go, alias.go, check.go, due.go,
// encode.go, follower.go, owners.go, refusal.go, scan.go, show.go, state.go, fold.go, entry.go,
// tree.go, update.go, name.go, field.go.
package state
