#!lua
-- Makes ids due after a time, or earlier if they are due earlier.
-- KEYS[1] ix_d_{NAME}
-- ARGV[1] time until they are due, ms
-- ARGV[i] ids
-- returns the number of ids that were not on the due list
-- cost O(log n) for each id

local t = redis.call('TIME')
local at = t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[1]
local added = 0
for i = 2, #ARGV do
	added = added + redis.call('ZADD', KEYS[1], 'LT', at, ARGV[i])
end
return added
