// Package hold keeps places: the seats of a show, or a number of equal units. A hold takes places
// for some minutes, a sale for good, and the places taken never exceed the capacity.
//
// A resource is a channel, hold:<resource>. Nothing is counted in a stored counter, and nothing is
// given back by a process: a hold is a set of fields with leases, so the store ends it, on time and
// by its own clock. Every operation reads a few fields and writes one [state.Update], whose
// conditions make the store enforce the decision. If something has changed in between, the
// operation reads again.
//
// # Fields
//
//	field                 value                          ends                    part of
//	$resource             Resource                       with the channel        -
//	seat/<name>           {"s":"held"} or {"s":"sold"}   held: with the hold     $$live:…, $$hold/…
//	$$live:<user>/<id>    1                              with the hold           -
//	$$hold/<id>           record                         see below               -
//	$$of:<user>/<id>      time of creation, Unix ms      with the record         $$hold/<id>
//
// The group seat/ has at most Capacity fields. A unit is a seat with a random name. The group
// $$live:<user>/ has at most PerUser fields. <user> is the user's name, escaped, or a hash of a
// long name; it is empty for a hold without a user.
//
// The places that are taken are the fields of the group seat/, and those among them that are held
// are parts of $$live:…. The store counts both by its indexes of names and parts, which the script
// of a change maintains: a resource with ten thousand seats is counted like one with ten.
//
// The record is all that is known of a hold or a sale. That of a hold lives a day longer than the
// hold, and that of a sale as long as the sale: so a late confirm learns what happened, and an id
// is not used twice. $$live:… tells whether a hold is live: it has expired if the record says held,
// and $$live:… is gone. The places are parts of $$live:…; a sale makes them parts of the record,
// which has no end.
//
// # List and metrics
//
// The list of resources is an index, see package index. Its card of a resource has the numbers of
// places that are held and sold. A round computes the cards of resources that have changed, whose
// next hold ends, or that no broker has looked at for a while. No operation depends on it.
//
// # Conditions
//
// Every update has the condition that $resource has the id that was read. So no hold is made by the
// rules of an earlier PUT. A PUT has the condition that the group seat/ has at most as many fields
// as the new capacity ([state.AtMost]). Confirm, renew and release require that the record has the
// id that was read, and that $$live:… exists. So one of two racing calls wins, and the other reads
// what the first one did.
package hold
