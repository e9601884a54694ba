#!lua flags=allow-oom
-- Takes a server out of a channel.
-- KEYS[1] ch_{channel}
-- ARGV[1] server
-- returns how many servers are left
-- cost O(1)
redis.call('SREM', KEYS[1], ARGV[1])
return redis.call('SCARD', KEYS[1])
