package registry

import (
	"strconv"

	"switchboard/internal/slots"
)

// keys builds the keys; its value is the prefix. The braces are Redis Cluster hash tags: all keys
// of one server are in one slot.
type keys string

// serverList is a SET of server ids. Beat adds to it, Leave and Forget remove from it.
func (p keys) serverList() string { return string(p) + "s_list" }

// lease is a HASH with the description of a server. Its TTL is the lease. Owned by the server.
func (p keys) lease(server string) string { return string(p) + "s_{" + server + "}" }

// ServersTag is the name in braces in the keys of the lists of live servers, and so decides their
// slot.
const ServersTag = "servers"

// listEnds is a ZSET of the live servers, by the end of their leases, Unix us. It also has the time
// of the last beat, and the number of the last change: see renew_listed.lua. Renew adds to it;
// Renew, Leave, DeclareDead and Forget remove from it.
func (p keys) listEnds() string { return string(p) + "s_ends_{" + ServersTag + "}" }

// listChanges is a ZSET of the servers that have started or ended lately, by the number of the
// change. Owned like listEnds.
func (p keys) listChanges() string { return string(p) + "s_changes_{" + ServersTag + "}" }

// listAbout is a HASH with the description of each live server, as JSON. Owned like listEnds.
func (p keys) listAbout() string { return string(p) + "s_about_{" + ServersTag + "}" }

// tombstone is an empty STRING with a TTL. Owned by the janitor.
func (p keys) tombstone(server string) string { return string(p) + "s_dead_{" + server + "}" }

// died is a ZSET of servers that have died, by the time. Forget adds to it.
func (p keys) died() string { return string(p) + "s_died" }

// heldChannels is a SET of channels. Owned by the server, after its death by the janitor.
func (p keys) heldChannels(server string) string { return string(p) + "s_ch_{" + server + "}" }

// heldClients is a SET of clients. Owned by the server, after its death by the janitor.
func (p keys) heldClients(server string) string { return string(p) + "s_c_{" + server + "}" }

// user is a HASH from client to `<server>:<generation>`, with a TTL. Each field is owned by the
// server that it names.
func (p keys) user(user string) string { return string(p) + "u_{" + user + "}" }

// userWatchers is a ZSET with a TTL: the servers that watch the user, by the time of their last
// registration, Unix us. Each entry is owned by that server.
func (p keys) userWatchers(user string) string { return string(p) + "u_w_{" + user + "}" }

// revoked is a STRING with a TTL: the tokens of the user that were issued before this time, Unix
// ms, are revoked. client is "" for all clients. Written by the backend through any server.
func (p keys) revoked(user, client string) string {
	key := string(p) + "u_r_{" + user + "}"
	if client == "" {
		return key
	}
	return key + ":" + client
}

// revokedList is a ZSET of users with a TTL: the last revocations and changes of subscriptions, by
// an increasing number, which is about the time in ms. A client without a user has a line feed in
// front. Written like revoked, and read by all servers.
func (p keys) revokedList() string { return string(p) + "u_revoked" }

// subscriptions is a HASH with a TTL: the channels to which the backend has subscribed all clients
// of a user, or one client, or has unsubscribed them. Written by the backend through any server.
func (p keys) subscriptions(user, client string) string {
	switch {
	case user == "":
		return string(p) + "c_s_{" + client + "}"
	case client == "":
		return string(p) + "u_s_{" + user + "}"
	}
	return string(p) + "u_s_{" + user + "}:" + client
}

// spent is a HASH with a TTL: when the budgets of a user, or of an address, are full again, Unix
// us. Written by all servers.
func (p keys) spent(user, address string) string {
	if user != "" {
		return string(p) + "sb_{" + user + "}"
	}
	return string(p) + "sb_a_{" + address + "}"
}

// channelList is a SET of channels. Bind and unbind maintain it, the janitor corrects it. In a
// Cluster only servers of former versions need it.
func (p keys) channelList() string { return string(p) + "ch_list" }

// channelSets is how many sets the list of channels has in a Cluster. All servers must agree.
const channelSets = 64

// setOf returns the number of the set that lists a channel in a Cluster.
func setOf(channel string) int { return slots.Of(channel) % channelSets }

// channelSet is a SET of channels: a part of the list of channels in a Cluster, maintained like
// channelList.
func (p keys) channelSet(n int) string { return string(p) + "ch_list_{" + strconv.Itoa(n) + "}" }

// channel is a SET of servers. Each entry is owned by that server, after its death by the janitor.
func (p keys) channel(channel string) string { return string(p) + "ch_{" + channel + "}" }

// roster is a HASH of the members that server has in channel: from client to
// `<since, ms>:<generation>:<json>`, and the field versionField. Owned by the server, after its
// death by the janitor.
func (p keys) roster(channel, server string) string {
	return string(p) + "ch_p_{" + channel + "}:" + server
}

// watchers is a SET of the servers that watch the channel's presence. Owned like channel.
func (p keys) watchers(channel string) string { return string(p) + "ch_pw_{" + channel + "}" }
