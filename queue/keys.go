package queue

import "strconv"

// keys spells every key of this package. All but channelServers and userClients belong to it.
type keys struct{ prefix string }

// channel is the ZSET of a channel's messages.
func (k keys) channel(name string) string { return k.prefix + "mq_ch_{" + name + "}" }

// channelMeta is the HASH with a channel's last id, floor and bytes; it outlives the ZSET.
func (k keys) channelMeta(name string) string { return k.prefix + "mq_m_{" + name + "}" }

// channelKey is the STRING with the id stored in the channel under an idempotency key.
func (k keys) channelKey(name, key string) string { return k.prefix + "mq_k_{" + name + "}:" + key }

// channelServers is the SET of servers with subscribers. Package registry owns it.
func (k keys) channelServers(name string) string { return k.prefix + "ch_{" + name + "}" }

// record is the HASH that fences what is done in a client's name.
func (k keys) record(client string) string { return k.prefix + "c_{" + client + "}" }

// list is the LIST of a client's messages.
func (k keys) list(client string) string { return k.prefix + "mq_c_{" + client + "}" }

// firsts is the ZSET of groups by the id that a client has of each, see ClientPush.AckGroup. Where the message was withdrawn
// its id stands in the place of the group.
func (k keys) firsts(client string) string { return k.prefix + "mq_f_{" + client + "}" }

// userClients is the HASH of a user's clients. Package registry owns it.
func (k keys) userClients(user string) string { return k.prefix + "u_{" + user + "}" }

// clientKey is the STRING with the id stored in the list under an idempotency key.
func (k keys) clientKey(client, key string) string { return k.prefix + "mq_kc_{" + client + "}:" + key }

// requests is the LIST of client requests that workers take from.
func (k keys) requests(n int) string { return k.prefix + "qq_{" + strconv.Itoa(n) + "}" }

// requestLedger is the LIST with the size and the sender of each request, in their order.
func (k keys) requestLedger(n int) string { return k.prefix + "qq_o_{" + strconv.Itoa(n) + "}" }

// requestSums is the HASH with the bytes of the requests, and the requests and bytes of each
// sender.
func (k keys) requestSums(n int) string { return k.prefix + "qq_s_{" + strconv.Itoa(n) + "}" }
