#!lua
-- Counts the cards of lists.
-- KEYS[1] ix_l_{NAME}: the prefix of the lists
-- ARGV[i] lists
-- returns the number of cards of each list
-- cost O(lists)

local counts = {}
for i = 1, #ARGV do
	counts[i] = redis.call('ZCARD', KEYS[1] .. ARGV[i])
end
return counts
