// Package scene keeps avatars and the scenes that they are in. An avatar belongs to an account, the
// user of a client. It is in at most one scene, and stays listed there while its player is offline,
// until it moves to another scene.
//
// Everything is channel state, so any broker answers any call, and rules hold in the store. Clients
// cannot read the channels of avatars and worlds.
//
//	avatar:{id}     $$avatar         the record: account, name, figure, status, data, scene
//	                $$left/{scene}   a scene that the avatar has left, until its place there is gone
//	scene:{id}      $scene           the record: world, name, status, time, data
//	                $$pending        the name and status before a change of the name, until the world
//	                                 has the new name
//	                pc/{avatar}      a place: name and figure. Its client owns it, with grace never
//	                a/{avatar}/*     what the player writes; parts of the place
//	world:{world}   $$scene/{name}   the id of the scene with the name
//
// The id of a record's field is the version of the avatar or scene.
//
// # Where an avatar is
//
// The record of the avatar decides. A transfer has four steps, and each is one update of one
// channel:
//
//  1. It takes a place in the new scene, with a lease, under the condition that the scene is open.
//  2. It moves the record, under the condition that it has not changed, and notes the old scene in
//     $$left.
//  3. It confirms the place: it sets the place again without a lease, under the condition that the
//     place is still the one of step 1.
//  4. It leaves the old scene: it deletes the place there, and then the field in $$left.
//
// If a transfer stops after step 1, the lease ends. After the steps 2 and 3, the round of any
// broker does the rest, see [Scenes.Round]. Until then the old scene may list the avatar, too,
// and the reads of this package leave it out.
//
// A place without a lease is only written by an update with two properties: its condition names
// the id of the place that was read or taken, and after that the record was read or moved, and
// named the scene. A place is only deleted by an update with the same condition, after a read of
// the record that did not name the scene. So the two exclude each other, however long an update
// is delayed. A place that a late deletion has taken from a newer transfer is made again: the
// record names it.
//
// Names of scenes follow the same rules, see name.go.
package scene
