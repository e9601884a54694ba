package events

import "strconv"

// keys spells every key behind a prefix; all belong to this package, and those of one shard are in one slot.
type keys string

func (k keys) of(name string, shard int) string {
	return string(k) + "ev_" + name + "_{ev" + strconv.Itoa(shard) + "}"
}

// due is the ZSET of what is to be looked at, by when.
func (k keys) due(shard int) string { return k.of("due", shard) }

// told is the HASH of who is present by what was told last.
func (k keys) told(shard int) string { return k.of("told", shard) }

// watch is the HASH of watched messages.
func (k keys) watch(shard int) string { return k.of("watch", shard) }

// out is the LIST of events to send.
func (k keys) out(shard int) string { return k.of("out", shard) }

// dead is the LIST of events that were given up.
func (k keys) dead(shard int) string { return k.of("dead", shard) }

// meta is the HASH with a shard's counters and its lease.
func (k keys) meta(shard int) string { return k.of("m", shard) }
