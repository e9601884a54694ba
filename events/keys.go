package events

import "strconv"

// keys is the prefix of all keys. Its methods return their names. This package owns all of them.
// The keys of one shard are in one slot.
type keys string

func (k keys) name(key string, shard int) string {
	return string(k) + "ev_" + key + "_{ev" + strconv.Itoa(shard) + "}"
}

// due is a ZSET of the entries to check, by the time of the check.
func (k keys) due(shard int) string { return k.name("due", shard) }

// reported is a HASH of the users and channels that were last reported present.
func (k keys) reported(shard int) string { return k.name("told", shard) }

// deadlines is a HASH of the records of messages with an acknowledgement deadline.
func (k keys) deadlines(shard int) string { return k.name("watch", shard) }

// fields is a HASH of the tracked channels.
func (k keys) fields(shard int) string { return k.name("fields", shard) }

// outbox is a LIST of the events to send.
func (k keys) outbox(shard int) string { return k.name("out", shard) }

// deadLetters is a LIST of the events that are no longer sent.
func (k keys) deadLetters(shard int) string { return k.name("dead", shard) }

// meta is a HASH with the counters of a shard and the lease of its outbox.
func (k keys) meta(shard int) string { return k.name("m", shard) }
