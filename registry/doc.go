// Package registry stores which servers are alive, which servers have subscribers of a channel,
// which members of a channel each server has, and the server of each client of a user.
//
// # Keys
//
// The braces are literal. Every key begins with [Options].Prefix.
//
//	key                      type    holds                            bounded by
//	s_list                   SET     server ids                       Leave, Forget
//	s_{server}               HASH    host, version, started_at,       Options.Lease, renewed by Beat
//	                                 last_active (ms since 1970),
//	                                 connections, users, channels,
//	                                 watching, can
//	s_ends_{servers}         ZSET    live servers by the end of       Renew, Leave, DeclareDead,
//	                                 their leases, Unix us            Forget
//	s_changes_{servers}      ZSET    servers that have started or     the same; changesKeep
//	                                 ended, by a growing number
//	s_about_{servers}        HASH    host, version, started_at, can,  the same
//	                                 of live servers, JSON
//	s_dead_{server}          STRING  empty: the tombstone             Options.TombstoneTTL
//	s_died                   ZSET    dead servers by time             24 h, 1000 servers
//	s_ch_{server}            SET     channels bound to the server     UnbindChannel, Leave, Forget
//	s_c_{server}             SET     clients held by the server       DropClient, Leave, Forget
//	u_{user}                 HASH    <server>:<generation> by client, Options.UserTTL, renewed by
//	                                 without server if offline        BindUsers; MaxClients fields
//	u_w_{user}               ZSET    servers that watch the user, by  Options.UserTTL, renewed by
//	                                 their last registration, Unix us WatchUsers; UnwatchUsers
//	u_r_{user}               STRING  tokens issued before this time   Options.RevokedTTL
//	                                 are revoked, Unix ms
//	u_r_{user}:<client>      STRING  the same for one client          Options.RevokedTTL
//	u_revoked                ZSET    users whose tokens were revoked  revokedListTTL after the
//	                                 or subscriptions changed         last change
//	                                 lately, by a growing number
//	u_s_{user}               HASH    <kind><us> by channel, and       Options.SubscribedTTL, renewed
//	                                 :<position>: what the backend    by Subscriptions;
//	                                 has subscribed the user's        2 MaxSubscriptions fields
//	                                 clients to
//	u_s_{user}:<client>      HASH    the same for one client          the same
//	c_s_{client}             HASH    the same for a client without    the same
//	                                 a user
//	sb_{user}                HASH    bytes, channels: when the        the time until the later of
//	                                 user's budgets are full again,   the two
//	                                 Unix us
//	sb_a_{address}           HASH    the same for clients without     the same
//	                                 a user
//	ch_list                  SET     channels that have servers       UnbindChannel, PruneChannel
//	ch_list_{N}              SET     the same in a Cluster, by the    UnbindChannel, PruneChannel
//	                                 channel's slot mod 64
//	ch_{channel}             SET     servers with a subscriber        UnbindChannel
//	ch_p_{channel}:<server>  HASH    <ms>:<generation>:<json> by      UnbindChannel, ChangePresence
//	                                 client, and the version
//	ch_pw_{channel}          SET     servers that watch presence      UnbindChannel, UnwatchPresence
//
// # The list of live servers
//
// A beat must not read all leases: the beats of n servers would be n² commands. So the leases are
// also in three keys of one slot. Renew, in one script, renews the lease of the caller there, ends
// those that have expired, and returns what has changed since the caller's last beat. What changes
// with each beat, such as the number of connections, is only in s_{server}: see Servers.
//
// Both leases begin with the same beat. s_{server} fences a server that was declared dead, and is
// what a janitor looks at. Servers of a former version are only in s_list and s_{server}. A caller
// of Renew notices them by the length of s_list, and reads their leases.
//
// # Watched users
//
// A server that watches a user registers itself in u_w_{user} and then reads u_{user}. BindUsers
// and ReleaseUser write u_{user} and read u_w_{user}, in one script. So of a registration and a
// change at the same time, either the read sees the change, or the answer to the change has the
// server, and its caller notifies that server. A server registers again at each renewal, and after
// a failover may have lost its entry. The entries of dead servers end after Options.UserTTL.
//
// # Revoked tokens
//
// Revoke writes u_r_ and then reads u_{user}, in one script. BindUsers checks u_r_ and then writes
// u_{user}, in one script. So of a revocation and a bind at the same time, either the bind is
// refused, or the revocation finds the client and its server. Revoke then adds the user to
// u_revoked, which each server reads at every beat: it finds its clients also if the call to it is
// lost. A server that cannot read the list for longer than revokedListTTL has lost its lease, and
// binds all of its clients again.
//
// # Subscriptions by the backend
//
// Subscribe follows the same order: it writes u_s_ and then reads u_{user}, and BindUsers writes
// u_{user} and then looks for u_s_. A caller of BindUsers then reads the lists with Subscriptions.
// For a client without a user, the caller of Subscribe reads c_{client} after it, and
// queue.Redis.BindClients writes c_{client} and looks for c_s_{client}, in one script. So of a call
// of the backend and a bind at the same time, one finds the other. u_revoked names the user of a
// changed list, too. Of the entries of a channel in several lists, the latest applies. So a list
// keeps entries of channels from which clients were unsubscribed.
//
// # The list of channels
//
// ch_list finds what no other key finds: channels whose servers a failover has lost, and which have
// messages to trim. In a Cluster it would be one set with all channels, on one master, which each
// bind would need. So there it is 64 sets, ch_list_{N}. A bind writes one of them, and a failover
// concerns the channels in those of its master.
//
// Servers of former versions read and write only ch_list. While one may be listed, binds write
// both: see KeepChannelList. Unbinds always remove a channel from both. Reads merge both: first
// ch_list, without the names in the sets, and then the sets. After the last server of a former
// version has left, MoveChannelList moves what is left in ch_list. It adds a name to its set before
// it removes it from ch_list, so a read at the same time does not miss it.
//
// # Order
//
// No script touches two slots, so a binding takes several steps. A server adds the name of a
// channel or client to s_ch_ or s_c_ before the binding, and removes it after the unbinding. If the
// server dies between two steps, these sets may have names without a binding, but they have the
// name of every binding. So the janitor finds all bindings there. Every call can be repeated.
// Repeating a binding restores entries that a failover lost.
//
// A server that was declared dead cannot bind anything: the tombstone is in the same slot as s_ch_
// and s_c_, and the script that adds to them checks it. A server may be suspended after that check
// and declared dead before it binds. See bindChannels for that case.
//
// # Files
//
// Files in reading order: memory_channels.go, memory_live.go, memory_subscriptions.go,
// memory_revoke.go, memory_users.go, memory_watch.go, redis_watch.go, redis_channels.go,
// redis_channel_lists.go, redis_revoke.go, redis_servers.go, redis_spending.go,
// redis_subscriptions.go, redis_channel_pages.go, redis_beat.go, redis_users.go,
// redis_compare.go, format.go, redis_binding.go, redis_presence.go, redis_held.go, redis.go,
// keys.go, memory_spending.go, memory_presence.go, presence.go, memory_servers.go, memory.go,
// options.go, registry.go, spending.go, subscriptions.go.
package registry
