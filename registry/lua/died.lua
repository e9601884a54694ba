#!lua flags=no-writes
-- Returns the records of servers that have died, the latest first.
-- KEYS[1] s_died
-- ARGV[1] how long a record stays, ms
-- returns {server, Unix ms, …}
-- cost O(records)

local call = redis.call
local now = call('TIME')
local since = string.format('%d', now[1] * 1000 + math.floor(now[2] / 1000) - ARGV[1])
return call('ZRANGE', KEYS[1], '+inf', since, 'BYSCORE', 'REV', 'WITHSCORES')
