#!lua
-- Reads a page of a list.
-- KEYS[1] ix_{NAME}
-- KEYS[2] ix_l_{NAME}: the prefix of the lists
-- ARGV[1] list
-- ARGV[2] lowest score
-- ARGV[3] highest score
-- ARGV[4] 1 for the highest score first, else 0
-- ARGV[5] not empty if the page begins after a card
-- ARGV[6] the id of that card; its score is the lowest or the highest one
-- ARGV[7] most cards
-- returns id, score and record of each card, one after the other
-- cost O(log n + cards of the page + cards with the score of ARGV[6])

local list, low, high, limit = KEYS[2] .. ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[7])
local descending, after = ARGV[4] == '1', ARGV[5] ~= '' and ARGV[6]
local edge = descending and high or low
local page, offset = {}, 0
while limit > 0 do
	local found
	if descending then
		found = redis.call('ZREVRANGEBYSCORE', list, high, low, 'WITHSCORES', 'LIMIT', offset, limit + 1)
	else
		found = redis.call('ZRANGEBYSCORE', list, low, high, 'WITHSCORES', 'LIMIT', offset, limit + 1)
	end
	if #found == 0 then
		break
	end
	for i = 1, #found, 2 do
		local id, score = found[i], found[i+1]
		local passed = after and tonumber(score) == tonumber(edge)
			and (descending and id >= after or not descending and id <= after)
		if not passed and limit > 0 then
			page[#page+1] = id
			page[#page+1] = score
			page[#page+1] = redis.call('HGET', KEYS[1], id) or '0\n0\n'
			limit = limit - 1
		end
	end
	offset = offset + #found / 2
end
return page
