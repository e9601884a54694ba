// Package registry says who is where: which servers are alive, which of them have
// subscribers of a channel, and on which server each client of a user was seen last.
//
// # Keys
//
// The braces are literal. A prefix from [Options] stands before every key.
//
//	key              type    holds                                bound
//	s_list           SET     server ids                           Leave, Forget
//	s_{server}       HASH    host, version, started_at,           Options.Lease, renewed by Beat
//	                         last_active (ms since 1970),
//	                         connections, users, channels
//	s_dead_{server}  STRING  nothing: the tombstone               Options.TombstoneTTL
//	s_ch_{server}    SET     channels bound to the server         UnbindChannel, Leave, Forget
//	s_c_{server}     SET     clients held by the server           DropClient, Leave, Forget
//	u_{user}         HASH    client -> <server>:<generation>,     Options.UserTTL, renewed by BindUsers;
//	                         without server when offline          MaxClients fields
//	ch_list          SET     channels that have servers           UnbindChannel, PruneChannel
//	ch_{channel}     SET     servers with a subscriber            UnbindChannel
//
// # Order
//
// No script touches two slots, so a binding is several steps, in an order that leaves
// too much behind when a process dies between them, never too little: what a server
// holds is noted in its s_ sets before it is bound and struck out after it is unbound.
// Whoever cleans up after a dead server finds everything there. Every call can be
// repeated, and repeating a binding restores what a failover lost.
//
// A server declared dead can bind nothing more: the tombstone is in the slot of its s_
// sets and is checked with the note. See [Redis.BindChannel] for the server that slept
// between the note and the binding.
package registry
