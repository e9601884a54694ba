// Package redisurl opens the Redis that servers share (one server, Sentinel or Cluster) from a URL:
//
//	redis://[user:password@]host[:port][/db]                      one server
//	redis-sentinel://[user:password@]host[:port],…/master[?db=0]  Sentinels, name of the master
//	redis-cluster://[user:password@]host[:port],…                 one or more nodes of a Cluster
//	rediss:// rediss-sentinel:// rediss-cluster://                the same over TLS
//
// User and password are those of Redis. If the Sentinels have their own, sentinel_username and
// sentinel_password in the query set them. The query may also set the parameters of go-redis:
// pool_size, dial_timeout, client_name and so on. Parameters that would break a guarantee (by
// repeating commands, or reading from replicas) are refused.
//
// [CheckPolicy] refuses a Redis that evicts keys. [Watch] reports that a Redis restarted, or that
// another one took over.
package redisurl
