package main

import "context"

// scenario is one row of the ledger to be.
type scenario struct {
	name  string
	about string // what the fault does, in one line
	redis topology
	fault func(context.Context, *stage) error

	brokers    int    // zero means three
	hints      string // value of faults.hints at all brokers
	durable    bool   // pushes are
	ghosts     bool   // some clients vanish together with the victim
	redisLink  bool   // between the victim and Redis there is a proxy
	peerLinks  bool   // before each broker's address for the others there is a proxy
	wrongClock bool   // the victim's wall clock is wrong
	special    role   // of some clients
	percent    int    // of the clients have it
	forgets    bool   // Redis loses its last writes under this fault, by its nature
}

// tolerance is what Redis does to the row.
func (sc scenario) tolerance() tolerance {
	return tolerance{forgets: sc.forgets, loses: sc.forgets && !sc.durable}
}

// scenarios are the ledger. The victim is a broker, of a choice that the seed makes.
var scenarios = []scenario{
	{
		name: "none", redis: single, fault: nothing,
		about: "nothing happens: what the accounting says when all is well",
	},
	{
		name: "kill -9 broker", redis: single, fault: killBroker, ghosts: true,
		about: "one broker is killed, 5 of its clients vanish with it, the others go elsewhere; it is started again when the lease ran out",
	},
	{
		name: "kill -9 broker and janitor", redis: single, fault: killBrokerAndJanitor, ghosts: true,
		about: "the same, and the janitor is killed at the same moment; it is started again after the lease",
	},
	{
		name: "freeze broker", redis: single, fault: freezeBroker, ghosts: true, special: mover, percent: 20,
		about: "one broker is stopped (SIGSTOP) for longer than lease and janitor need, then goes on; 5 of its clients vanish, some go elsewhere meanwhile, the others stay",
	},
	{
		name: "rolling restart", redis: single, fault: rollingRestart,
		about: "each broker in turn is ended by SIGTERM and started again",
	},
	{
		name: "wrong clock", redis: single, fault: nothing, wrongClock: true,
		about: "the wall clock of one broker is 10 minutes ahead, all the time",
	},
	{
		name: "kill -9 Redis, AOF", redis: aof, fault: killRedis,
		about: "Redis with appendfsync everysec is killed and started again after 2 beats; the append-only file has all that was written",
	},
	{
		name: "kill -9 Redis, no AOF", redis: single, fault: killRedis, forgets: true,
		about: "Redis without a file is killed and comes back empty after 2 beats",
	},
	{
		name: "Sentinel failover", redis: sentinel, fault: killMaster, forgets: true, special: idler, percent: 10,
		about: "the replica loses touch with its master, which is killed a beat later; Sentinels promote the replica, the dead one comes back as its replica; 10 % of the clients read nothing in that beat, and are cut off with the kill",
	},
	{
		name: "Sentinel failover, durable", redis: sentinel, fault: killMaster, durable: true, forgets: true, special: idler, percent: 10,
		about: "as above, and every push asks for durable",
	},
	{
		name: "Sentinel failover, slow clock", redis: unequal, fault: killMaster, forgets: true, special: idler, percent: 10,
		about: "the same without durable, to a replica whose wall clock is 10 minutes behind",
	},
	{
		name: "freeze master", redis: sentinel, fault: freezeMaster, forgets: true,
		about: "the master is stopped (SIGSTOP), Sentinels promote its replica; then it goes on and is made a replica",
	},
	{
		name: "Cluster failover", redis: cluster, fault: killMaster, forgets: true, special: idler, percent: 10,
		about: "the same with one of three masters, and no Sentinels: the nodes agree on the successor",
	},
	{
		name: "Cluster failover, durable", redis: cluster, fault: killMaster, durable: true, forgets: true, special: idler, percent: 10,
		about: "as above, and every push asks for durable",
	},
	{
		name: "Redis link cut", redis: single, fault: cutRedisLink, redisLink: true,
		about: "one broker's connections to Redis are ended and refused for 4 beats",
	},
	{
		name: "Redis link half-open", redis: single, fault: swallowRedisLink, redisLink: true,
		about: "on one broker's connections to Redis all bytes vanish, for the lease and 2 beats",
	},
	{
		name: "Redis link slow", redis: single, fault: slowRedisLink, redisLink: true,
		about: "one broker's round trips to Redis take 100 ms longer, for 8 beats",
	},
	{
		name: "Redis full", redis: single, fault: fillRedis,
		about: "maxmemory is set to what is used, for 7 beats",
	},
	{
		name: "peer links cut", redis: single, fault: cutPeerLinks, peerLinks: true,
		about: "all links between the brokers are ended and refused for 6 beats",
	},
	{
		name: "peer links half-open", redis: single, fault: swallowPeerLinks, peerLinks: true,
		about: "on all links between the brokers all bytes vanish, for 6 beats",
	},
	{
		name: "hints dropped", redis: single, fault: nothing, hints: "drop",
		about: "no hint reaches another broker, all the time",
	},
	{
		name: "hints mangled", redis: single, fault: nothing, hints: "mangle",
		about: "hints between brokers are repeated and reordered, all the time",
	},
	{
		name: "flapping clients", redis: single, fault: flap, special: flappy, percent: 10,
		about: "the connections of 10 % of the clients are reset about every second, for 10 beats",
	},
	{
		name: "stalled clients", redis: single, fault: stall, special: idler, percent: 33,
		about: "a third of the clients do not read their sockets for 7 beats",
	},
	{
		name: "five brokers, two killed", redis: single, fault: killTwo, brokers: 5,
		about: "two of five brokers are killed, 2 beats apart, and started again",
	},
}
