#!lua
-- Stores the card of a new document, if a list then has no more cards than a maximum.
-- KEYS[1] ix_{NAME}
-- KEYS[2] ix_l_{NAME}: the prefix of the lists
-- ARGV[1] id
-- ARGV[2] version
-- ARGV[3] its lists, a line for each: name, space, score
-- ARGV[4] data
-- ARGV[5] the list
-- ARGV[6] its most cards
-- returns 1 if the card was stored, 0 if the list is full, or the id has a card or was removed
-- cost O(log n) for each list of the card

local call = redis.call
if call('HEXISTS', KEYS[1], ARGV[1]) == 1 or call('ZCARD', KEYS[2] .. ARGV[5]) >= tonumber(ARGV[6]) then
	return 0
end
local n = 0
for name, score in string.gmatch(ARGV[3], '([^ \n]+) ([^\n]+)') do
	n = n + 1
	call('ZADD', KEYS[2] .. name, score, ARGV[1])
end
call('HSET', KEYS[1], ARGV[1], ARGV[2] .. '\n' .. n .. '\n' .. ARGV[3] .. '\n' .. ARGV[4])
return 1
