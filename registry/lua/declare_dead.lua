#!lua flags=allow-oom
-- Declares a server dead, unless it has a lease.
-- KEYS[1] s_dead_{server}
-- KEYS[2] s_{server}
-- ARGV[1] TTL of the tombstone, ms
-- returns 1, or 0 if the server has a lease
-- cost O(1)
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
redis.call('SET', KEYS[1], '', 'PX', ARGV[1])
return 1
