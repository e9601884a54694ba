// Package member makes a server one of several. It renews the server's lease, knows which other
// servers live, and passes hints between them and the parts of this server. When the store may have
// lost something, it binds it again.
//
// # What a failure concerns
//
// A failure of the store is a set of slots, which [Options.Changed] receives: those of a master
// that restarted or failed over. It concerns
//
//   - a channel if the set has the slot of its name: its servers, rosters and watchers may be lost
//   - a client if the set has the slot of its id: its record may be lost
//   - a client also if the set has the slot of its user: its entry in the user's list
//   - all channels and clients, but only their entries in this server's lists, if the set has the
//     slot of this server; and channels likewise by the slot of the list of channels, of which a
//     Cluster has 64 parts
//
// If this server was declared dead, or its lease had ended before the last beat, all slots are
// concerned: another server may have cleaned up. A failed beat alone concerns nothing.
//
// # The list
//
// These items are in a [worklist] until they are done. Its batches take 128 items, first those that
// were bound in the last minute. Each batch
//
//  1. adds the items to this server's lists, before anything else, so that the janitor finds them
//  2. compares the bindings, and makes those that are missing
//  3. compares the queues, and reads those that differ. This comes last: a message that was stored
//     while the binding was missing had no hint, so the comparison after the binding must see it
//
// An item that fails goes back to the list, until the next beat. There is no total time limit. A
// failure meanwhile adds items, also those that are done or in a batch: what was read before a
// failover does not count after it. After all items, the server checks in the slots of the failures
// that the store knows the connected owners of fields, and that it has the messages that it
// acknowledged. The ids of these messages are kept until then.
//
// # Calls without an answer
//
// If it is not known whether the store will execute a call, the store may execute it after a later
// one. For calls that no generation fences, [Member.UncertainChannel] and [Member.UncertainClient]
// put the item on the list. It is compared after a beat that began after the call had failed, and
// that succeeded: by then the store has executed what it had received before.
package member
