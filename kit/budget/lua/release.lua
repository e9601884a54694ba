#!lua
-- Returns objects of an owner to its budget.
-- KEYS[1] bu_{OWNER}:KIND
-- ARGV[i] ids of objects
-- returns the number of objects that were charged
-- cost O(log n) for each object

local removed = 0
for i = 1, #ARGV do
	removed = removed + redis.call('ZREM', KEYS[1], ARGV[i])
end
return removed
