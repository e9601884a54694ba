#!lua
-- Lists the objects of an owner that were charged some time ago, the oldest first.
-- KEYS[1] bu_{OWNER}:KIND
-- ARGV[1] least time since the charge, ms
-- ARGV[2] most objects; -1 for all
-- returns the ids of the objects
-- cost O(n)

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
return redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now - ARGV[1], 'LIMIT', 0, ARGV[2])
