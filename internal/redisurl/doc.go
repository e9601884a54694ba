// Package redisurl opens the one Redis that instances share, whatever its shape, from
// a URL:
//
//	redis://[user:password@]host[:port][/db]                            one server
//	redis-sentinel://[user:password@]host[:port],…/master[?db=0]        Sentinels and the name of the master
//	redis-cluster://[user:password@]host[:port],…                       some nodes of a Cluster
//	rediss:// rediss-sentinel:// rediss-cluster://                      the same over TLS
//
// User and password are those of Redis; Sentinels with their own take them from
// sentinel_username and sentinel_password in the query. The query may also set
// what go-redis reads there: pool_size, dial_timeout, client_name and so on. What
// would break a promise of ours (repeating commands, reading from replicas) is refused.
//
// [CheckPolicy] refuses a Redis that throws keys away, and [Watch] tells when
// another Redis, or the same one restarted, has taken the place of the one before.
package redisurl
