#!lua
-- Makes objects of an owner as old as if they had been charged some time ago, unless they are
-- newer. Older ones are listed before them.
-- KEYS[1] bu_{OWNER}:KIND
-- ARGV[1] time since the charge, ms
-- ARGV[i] ids of objects, from 2
-- returns the number of objects that were older
-- cost O(log n) for each object

local t = redis.call('TIME')
local at = t[1] * 1000 + math.floor(t[2] / 1000) - ARGV[1]
local changed = 0
for i = 2, #ARGV do
	changed = changed + redis.call('ZADD', KEYS[1], 'XX', 'GT', 'CH', at, ARGV[i])
end
return changed
