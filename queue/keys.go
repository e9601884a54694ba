package queue

import (
	"strconv"
	"strings"
)

// keys builds the keys. This package owns all of them but channelServers, userClients and
// clientSubscriptions.
type keys struct{ prefix string }

// The begins of the keys that pairs builds. The name and a brace follow.
const (
	channelKind     = "mq_ch_{"
	channelMetaKind = "mq_m_{"
	recordKind      = "c_{"
	listKind        = "mq_c_{"
)

// pairs returns two keys for each of n names, those of a name next to each other. They share one
// text, so that a key costs no object.
func (k keys) pairs(first, second string, n int, name func(i int) string) []string {
	size := n * (2*len(k.prefix+"}") + len(first) + len(second))
	for i := range n {
		size += 2 * len(name(i))
	}
	list := make([]string, 0, 2*n)
	var text strings.Builder
	text.Grow(size)
	for i := range n {
		for _, kind := range [...]string{first, second} {
			begin := text.Len()
			text.WriteString(k.prefix)
			text.WriteString(kind)
			text.WriteString(name(i))
			text.WriteString("}")
			list = append(list, text.String()[begin:])
		}
	}
	return list
}

// channel is the ZSET of a channel's messages.
func (k keys) channel(name string) string { return k.prefix + channelKind + name + "}" }

// channelMeta is the HASH with a channel's position: last id, floor and bytes. It outlives the
// ZSET.
func (k keys) channelMeta(name string) string { return k.prefix + channelMetaKind + name + "}" }

// state is the HASH with the fields of a channel's state: field → record, see
// [state.Field.AppendRecord].
func (k keys) state(name string) string { return k.prefix + "st_{" + name + "}" }

// stateNames is the ZSET with the names of the fields, with score 0: it orders and counts them.
func (k keys) stateNames(name string) string { return k.prefix + "st_n_{" + name + "}" }

// stateEnds is the ZSET with the fields that have an end, by that time in Unix ms.
func (k keys) stateEnds(name string) string { return k.prefix + "st_x_{" + name + "}" }

// stateOwners is the HASH with the clients that own fields, or did so: client → generation, time of
// its end or 0, server, and fields.
func (k keys) stateOwners(name string) string { return k.prefix + "st_o_{" + name + "}" }

// stateParts is the ZSET with "<parent> <field>" for each field that has a parent, with score 0.
func (k keys) stateParts(name string) string { return k.prefix + "st_p_{" + name + "}" }

// channelKey is the STRING with the id of the channel message that was pushed with an idempotency
// key. If the push was an update that added to numbers, their results follow as JSON.
func (k keys) channelKey(name, key string) string { return k.prefix + "mq_k_{" + name + "}:" + key }

// channelServers is the SET of servers with subscribers. Package registry owns it.
func (k keys) channelServers(name string) string { return k.prefix + "ch_{" + name + "}" }

// record is the HASH with a client's binding, and the state of its list.
func (k keys) record(client string) string { return k.prefix + recordKind + client + "}" }

// list is the LIST of a client's messages.
func (k keys) list(client string) string { return k.prefix + listKind + client + "}" }

// groups is the ZSET of acknowledgement groups in a client's list, see ClientPush.AckGroup. The
// score is the id of the message. If the message was withdrawn, the member is the id instead of the
// group.
func (k keys) groups(client string) string { return k.prefix + "mq_f_{" + client + "}" }

// userClients is the HASH of a user's clients. Package registry owns it.
func (k keys) userClients(user string) string { return k.prefix + "u_{" + user + "}" }

// clientSubscriptions is the HASH of the channels to which the backend has subscribed a client
// without a user. Package registry owns it.
func (k keys) clientSubscriptions(client string) string { return k.prefix + "c_s_{" + client + "}" }

// clientKey is the STRING with the id of the client message that was pushed with an idempotency
// key.
func (k keys) clientKey(client, key string) string { return k.prefix + "mq_kc_{" + client + "}:" + key }

// requests is the LIST of client requests that workers pop.
func (k keys) requests(n int) string { return k.prefix + "qq_{" + strconv.Itoa(n) + "}" }

// requestLedger is the LIST with the size and the sender of each request, in the same order.
func (k keys) requestLedger(n int) string { return k.prefix + "qq_o_{" + strconv.Itoa(n) + "}" }

// requestSums is the HASH with the bytes of all requests, and the number and bytes of the requests
// of each sender.
func (k keys) requestSums(n int) string { return k.prefix + "qq_s_{" + strconv.Itoa(n) + "}" }
