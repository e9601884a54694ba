// Package budget bounds how many objects each user leaves in the store, such as rooms.
//
// A [Budget] counts the objects of one kind by owner. An object is charged before it is stored, and
// returned when it has ended. Nothing depends on the return: if a budget is spent, the objects that
// do not exist any more are returned first. So a process that dies between two steps leaves nothing
// that has to be repaired, and no round looks at the budgets. A call looks at the 100 oldest
// objects, and the next one at those after them. Calls of backends are not charged.
//
// The keys of [Redis]:
//
//	bu_{OWNER}:KIND  ZSET  ids of objects, by the time of the charge or of the last look, Unix ms
//
// A key has at most Options.Most ids. It has a TTL of 30 days after the last charge, unless the
// objects do not end by themselves.
package budget
