package main

import "context"

// scenario describes one row of the ledger.
type scenario struct {
	name  string
	about string // what the fault does, in one line
	redis topology
	fault func(context.Context, *bed) error

	brokers    int    // zero means three
	aloof      bool   // the clients connect only to the other brokers, and the victim stores half of the pushes
	hints      string // value of faults.hints at all brokers
	durable    bool   // pushes are durable
	ghosts     bool   // some clients disappear together with the victim
	redisLink  bool   // a proxy between the victim and Redis
	peerLinks  bool   // a proxy in front of each broker's listener for the others
	wrongClock bool   // the victim's wall clock is wrong
	mixed      bool   // the victim, another broker and the janitor are of the former version at first
	special    role   // role of some clients
	percent    int    // percentage of clients with that role
	forgets    bool   // Redis loses its last writes under this fault
}

// tolerance returns what the row may show because Redis loses it.
func (sc scenario) tolerance() tolerance {
	return tolerance{forgets: sc.forgets, loses: sc.forgets && !sc.durable}
}

// scenarios are all rows of the ledger. The seed chooses the victim, which is a broker.
var scenarios = []scenario{
	{
		name: "none", redis: single, fault: noFault,
		about: "no fault",
	},
	{
		name: "kill -9 broker", redis: single, fault: killBroker, ghosts: true,
		about: "one broker is killed; 5 of its clients disappear with it, the others connect to other brokers; the broker is restarted after its lease expired",
	},
	{
		name: "kill -9 broker and janitor", redis: single, fault: killBrokerAndJanitor, ghosts: true,
		about: "the same, and the janitor is killed at the same moment; it is restarted after the lease",
	},
	{
		name: "freeze broker", redis: single, fault: freezeBroker, ghosts: true, special: moving, percent: 20,
		about: "one broker is stopped (SIGSTOP) until its lease has expired and the janitor has removed it, then continues; 5 of its clients disappear, some connect to other brokers, the others stay",
	},
	{
		name: "rolling restart", redis: single, fault: rollingRestart,
		about: "each broker in turn is stopped by SIGTERM and restarted",
	},
	{
		name: "kill -9 storing broker", redis: single, fault: killStoringBroker, aloof: true,
		about: "a broker without clients, which stores half of the pushes, is killed; it is restarted after its lease expired",
	},
	{
		name: "rolling restart of five", redis: single, fault: rollingRestart, brokers: 5,
		about: "each of five brokers in turn is stopped by SIGTERM and restarted",
	},
	{
		name: "mixed versions", redis: single, fault: mixVersions, ghosts: true, mixed: true,
		about: "two of three brokers and the janitor are of the former version; one of the two is killed, as in kill -9 broker, and one of this version takes its place; then the third broker is rolled back to the former version, and the last one of the two upgraded",
	},
	{
		name: "wrong clock", redis: single, fault: noFault, wrongClock: true,
		about: "the wall clock of one broker is 10 minutes fast throughout",
	},
	{
		name: "kill -9 Redis, AOF", redis: aof, fault: killRedis,
		about: "Redis with appendfsync everysec is killed and restarted after 2 beats; the append-only file holds all writes",
	},
	{
		name: "kill -9 Redis, no AOF", redis: single, fault: killRedis, forgets: true,
		about: "Redis without persistence is killed and restarted empty after 2 beats",
	},
	{
		name: "freeze Redis", redis: single, fault: freezeRedis, special: flapping, percent: 10,
		about: "Redis is stopped (SIGSTOP) for 4 beats and then executes what has arrived meanwhile; the connections of 10 % of the clients are reset about every second",
	},
	{
		name: "freeze Redis, two leases", redis: single, fault: freezeRedisLong, special: flapping, percent: 10,
		about: "the same for 10 beats, which is two leases",
	},
	{
		name: "Sentinel failover", redis: sentinel, fault: killMaster, forgets: true, special: stalling, percent: 10,
		about: "the replica loses its link to the master, which is killed a beat later; Sentinels promote the replica, and the old master becomes its replica; 10 % of the clients read nothing in that beat, and their connections are reset at the kill",
	},
	{
		name: "Sentinel failover, durable", redis: sentinel, fault: killMaster, durable: true, forgets: true, special: stalling, percent: 10,
		about: "the same, with durable pushes",
	},
	{
		name: "Sentinel failover, slow clock", redis: slowReplica, fault: killMaster, forgets: true, special: stalling, percent: 10,
		about: "the same without durable pushes, to a replica whose wall clock is 10 minutes slow",
	},
	{
		name: "two Sentinel failovers", redis: sentinel, fault: killTwoMasters, forgets: true, special: stalling, percent: 10,
		about: "as in the Sentinel failover, and the new master is killed in the same way as soon as the old one is its replica; the 10 % read nothing until then",
	},
	{
		name: "freeze master", redis: sentinel, fault: freezeMaster, forgets: true,
		about: "the master is stopped (SIGSTOP) and Sentinels promote its replica; then the old master continues and becomes a replica",
	},
	{
		name: "Cluster failover", redis: cluster, fault: killMaster, forgets: true, special: stalling, percent: 10,
		about: "as in the Sentinel failover, with one of three masters of a Cluster: the nodes elect the new master",
	},
	{
		name: "Cluster failover, durable", redis: cluster, fault: killMaster, durable: true, forgets: true, special: stalling, percent: 10,
		about: "the same, with durable pushes",
	},
	{
		name: "slots move", redis: cluster, fault: moveSlots,
		about: "12 slots of one master of a Cluster move to another one, one after the other, while their keys are in use",
	},
	{
		name: "Redis link cut", redis: single, fault: cutRedisLink, redisLink: true,
		about: "one broker's connections to Redis are closed and refused for 4 beats",
	},
	{
		name: "Redis link half-open", redis: single, fault: blackholeRedisLink, redisLink: true,
		about: "all bytes on one broker's connections to Redis are dropped for the lease and 2 beats",
	},
	{
		name: "Redis link slow", redis: single, fault: slowRedisLink, redisLink: true,
		about: "one broker's round trips to Redis take 100 ms longer for 8 beats",
	},
	{
		name: "Redis full", redis: single, fault: fillRedis,
		about: "maxmemory is set to the memory in use for 7 beats",
	},
	{
		name: "peer links cut", redis: single, fault: cutPeerLinks, peerLinks: true,
		about: "all connections between the brokers are closed and refused for 6 beats",
	},
	{
		name: "peer links half-open", redis: single, fault: blackholePeerLinks, peerLinks: true,
		about: "all bytes between the brokers are dropped for 6 beats",
	},
	{
		name: "one broker cut off", redis: single, fault: cutOffBroker, peerLinks: true,
		about: "all connections from the other brokers to one broker are closed and refused for 6 beats",
	},
	{
		name: "hints dropped", redis: single, fault: noFault, hints: "drop",
		about: "no hint reaches another broker throughout",
	},
	{
		name: "hints mangled", redis: single, fault: noFault, hints: "mangle",
		about: "hints between brokers are repeated and reordered throughout",
	},
	{
		name: "flapping clients", redis: single, fault: flapClients, special: flapping, percent: 10,
		about: "the connections of 10 % of the clients are reset about every second for 10 beats",
	},
	{
		name: "stalled clients", redis: single, fault: stallClients, special: stalling, percent: 33,
		about: "a third of the clients do not read their sockets for 7 beats",
	},
	{
		name: "five brokers, two killed", redis: single, fault: killTwo, brokers: 5,
		about: "two of five brokers are killed, 2 beats apart, and restarted",
	},
}
