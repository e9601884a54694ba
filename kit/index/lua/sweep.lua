#!lua
-- Forgets ids that were removed long ago.
-- KEYS[1] ix_{NAME}
-- KEYS[2] ix_t_{NAME}
-- ARGV[1] how long a removed id is remembered, ms
-- ARGV[2] most ids
-- returns the number of ids
-- cost O(log n) for each id

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local old = redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', now - ARGV[1], 'LIMIT', 0, ARGV[2])
for i = 1, #old do
	redis.call('ZREM', KEYS[2], old[i])
	redis.call('HDEL', KEYS[1], old[i])
end
return #old
