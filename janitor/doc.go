// Package janitor frees what dead servers held and trims the channels' queues.
//
// It runs in a process of its own, in several, or inside a broker that is alone. All
// state is in the stores, every step is conditional there and can be repeated, so
// several janitors do no harm and one that is cut off leaves its work to the next.
//
// # Servers
//
// A server in s_list without a lease is suspected. If it has none in the next round
// either, and its address does not answer in its name, it is declared dead: from
// then on it never gets its id back. What it held is released in chunks, channels
// first, then clients, and at last the server is forgotten. Until that moment it stays
// in s_list, so that whoever looks there finds unfinished work.
//
// A server that answers but renews no lease has lost the store; its clients are out
// of reach for everybody else, so it is spared for Patience and no longer.
//
// # Queues
//
// Each channel in ch_list is trimmed; servers that are neither listed nor leased go
// out of ch_{channel} (a binding that a failover brought back, or a goodbye cut
// short); a channel that no server holds goes out of ch_list.
//
// # Events
//
// Where there is an endpoint for events, the janitor makes and sends them: it looks at what is due, sends what was
// made, and now and then looks for what nobody noted; see package events. What it frees itself is noted by the registry
// that it is given.
package janitor
