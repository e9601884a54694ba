// Package queue stores the messages that clients have not received yet: a ZSET for each channel, a
// LIST for each client, and lists of client requests for the backend's workers. [Redis] is shared
// by several servers, [Memory] serves a single process.
//
// # Keys
//
// Braces are literal. They are Redis Cluster hash tags: all keys of one channel or one client are
// in one slot, so that one script can change them. Every key begins with Options.Prefix. Names must
// not contain braces.
//
//	key                   type    holds
//	mq_ch_{channel}       ZSET    <id>:<json>, score id
//	mq_m_{channel}        HASH    last, floor, bytes, lost, hole, until, st_keep, st_due, st_bytes
//	mq_k_{channel}:<key>  STRING  id of the message with this idempotency key, and of an update
//	                              the results of additions as JSON
//	st_{channel}          HASH    field → record, see state.Field.AppendRecord
//	st_n_{channel}        ZSET    names of the fields, score 0
//	st_x_{channel}        ZSET    fields that have an end, score Unix ms
//	st_o_{channel}        HASH    client → <generation> <end, or 0> <server> <field>…
//	st_p_{channel}        ZSET    <parent> <field>, score 0
//	c_{client}            HASH    user, server, generation, since, last, acked, floor, lost,
//	                              history, cut, cut_to, older_cut, older_cut_to, older_lost,
//	                              instance, attempt, until, first, secret
//	mq_c_{client}         LIST    <id>:<json>, oldest first
//	mq_kc_{client}:<key>  STRING  id of the message with this idempotency key
//	mq_f_{client}         ZSET    group, score id of its message; after a withdrawal the id
//	                              instead of the group
//	qq_{N}                LIST    client requests, oldest first
//	qq_o_{N}              LIST    <bytes> <sender> of each request in qq_{N}
//	qq_s_{N}              HASH    bytes; n <sender>, b <sender>
//
// Some of the fields need an explanation:
//
//	last                 highest id that the scripts know; other writers may have used higher ones
//	floor                see Ids
//	until                earliest time of the expiry, Unix ms; 0 makes the next append renew it
//	lost                 highest id whose loss a marker reports, see Losses
//	hole                 id of the channel's last marker
//	st_keep              time at which the state ends, Unix ms; -1 for never; absent without a state
//	st_due               earliest end in st_x_, 0 for none
//	st_bytes             bytes of names and values of the state
//	history, cut, cut_to, older_cut, older_cut_to, older_lost
//	                     see append_client.lua and confirm_client.lua
//	instance, attempt    see [Claim]
//	first                see Acknowledgement groups
//	secret               the [SecretHash], in hexadecimal
//
// The keys are bounded as follows:
//
//	mq_ch_   ChannelCap 10,000, ChannelMaxBytes 8 MiB, ChannelTTL 1 h, TrimChannel
//	mq_m_    MetaTTL 6 h after the messages expire, and after KeepPositions; no TTL with a state
//	mq_k_    KeyTTL 10 min
//	st_      state.Limits, and Limits.Keep after the last update
//	st_n_    like st_
//	st_x_    like st_
//	st_o_    owners of fields, and clients that were owners until state.FenceMS ago
//	st_p_    like st_
//	c_       RecordTTL 150 min after the last bind, refresh or append, and no less than its list
//	mq_c_    Ack, ClientCap 1000, ClientTTL 1 h or the TTL of a push
//	mq_kc_   KeyTTL 10 min
//	mq_f_    Ack, 2 × ClientCap, TTL of the record
//	qq_      RequestCap 10,000, RequestBytes 8 MiB, and of one sender RequestShare 100 and
//	         RequestShareBytes 1 MiB, then ErrFull; RequestTTL 1 h after the last push
//	qq_o_    like qq_
//	qq_s_    like qq_
//
// Messages, positions and records live at least as long as stated. The field until is the earliest
// time of their expiry. If an append finds it too soon, it renews them for an eighth more than
// stated. A refresh renews a record for twice its TTL, so that most refreshes only read it.
//
// If messages and position of a channel have expired, the channel counts as new: Prev is 0, and a
// page is Complete only if after is 0. Ids keep growing, since they follow the clock, which has
// advanced by MetaTTL at least. If the clock was set back by more than that, the clock readings of
// the callers (see Ids) keep ids from repeating.
//
// A page has at most about MaxPageBytes, one of a window at most about MaxWindowBytes, and each has
// at least one message. A window has the first MaxWindow messages of a client's list.
//
// Package registry writes two keys that this package reads: ch_{channel}, the servers with
// subscribers, and u_{user}, the clients of a user.
//
// # Ids
//
// The id of a message is its position in its queue: max(ms since 2020-01-01 UTC × 4096, last + 1)
// on the store's clock. Ids grow strictly within a queue. Up to 4096 messages a millisecond fit
// before ids run ahead of the clock. An id gives the age of the message. It is exact in a double
// (2^53) until 2089. Generations of clients follow the same rule. Every call passes the latest
// reading of the store's clock that the caller knows. If a Redis whose clock is behind takes over,
// it continues from that reading.
//
// The floor of a queue is the highest id that was dropped without having been received. All held
// messages are above it. It moves if a cap or the janitor drops messages. No code runs when a whole
// queue expires. The next call finds no messages although ids were assigned, and sets the floor to
// the last id.
//
// # Entries
//
// A message of a channel that has more than data, such as its author, is an entry:
// <id>:~<json of state.Entry>. The list of a client has no entries: DecodeMember returns an error
// for one, and Window removes it.
//
// # State
//
// The state of a channel is described in package state, which is the reference for the scripts. A
// script that changes a state first removes what is due, then makes the change in tables, appends
// its entry, <id>:~<json of state.Entry>, and writes the records. The append is that of a message.
// Reads skip the fields that are due. With a [StateScript], another package changes keys of its own
// in the same step.
//
// The records of a state have no TTL, since an entry reports its end. The next change after st_keep
// removes all fields, or a sweep of the janitor, see [Redis.StateChannels]. The script that removes
// the last field and the last owner gives mq_m a TTL again.
//
// # Acknowledgement groups
//
// A message to all clients of a user may have a group (ClientPush.AckGroup): the first client that
// acknowledges it withdraws the copies of the others. One script stores a message in the list and
// its group in mq_f_{client}, with the id of the message as score. The record's field first is the
// lowest score. An acknowledgement below first needs no extra work. Otherwise Ack finds the groups
// whose messages the client has received, withdraws these messages from the lists of the user's
// other clients, in their slots, and then deletes the groups. If the cap or the TTL dropped a
// message before it was acknowledged, the client has not received it, and its group has no effect.
//
// If the process dies before it deletes the groups, the next acknowledgement or bind of the client
// finds them again. A withdrawn message is not a gap: the floor stays. If the withdrawal empties
// the list, the record's acked becomes last. The id of the message stays in mq_f_{client} until the
// client acknowledges a later one, so that ConfirmClient does not consider it lost.
//
// # Durable pushes
//
// A durable push returns after a replica has the message: WAIT 1 follows the script on the same
// connection. If no replica has it in time, or there is none, the message is stored and the error
// is ErrNotReplicated. The same push with the same key waits again. The script then writes the key
// again, so that there is a write to wait for.
//
// # Losses
//
// Redis replicates asynchronously: a failover, or a restart without persistence, may lose
// acknowledged writes. After that, each server checks the messages that the store acknowledged to
// it, with ConfirmChannel and ConfirmClient. For a lost message a marker is appended,
// <id>:!<after>-<to>. It is an entry like a message. It reports that the messages with
// after < id <= to are lost. All readers receive it in order, until it expires or is trimmed.
//
// # Other writers
//
// A backend may write to Redis itself: ZADD mq_ch_{channel} <id> <id>:<json> or RPUSH mq_c_{client}
// <id>:<json>, with ids above all existing ones, and then call notify. Malformed members are
// skipped in a channel, until a cap or the janitor removes them. In a client's list, Window removes
// them.
//
// # Files
//
// Files in reading order: redis_groups.go, redis_confirm.go, check_state.go,
// redis_state_read.go, erase.go, heads.go, memory_channel.go, memory_confirm.go,
// memory_client.go, memory_groups.go, memory_requests.go, memory_state.go, memory.go,
// redis_ack.go, redis_channel.go, redis_client.go, member.go, redis_state.go, text_reply.go,
// redis.go, options.go, queue.go, msgpack.go, keys.go, requests.go, state.go,
// state_script.go, script_members.go, table.go, store_clock.go.
package queue
