#!lua flags=no-writes
-- Reads a page of a list. It finds the beginning of the page by ranks, since any number of cards
-- may have the same score.
-- KEYS[1] ix_{NAME}
-- KEYS[2] ix_l_{NAME}: the prefix of the lists
-- ARGV[1] list
-- ARGV[2] lowest score
-- ARGV[3] highest score
-- ARGV[4] 1 for the highest score first, else 0
-- ARGV[5] the score of the card after which the page begins, or '' for the first page
-- ARGV[6] the id of that card, which may have been removed
-- ARGV[7] most cards
-- ARGV[8] most bytes of the records, but at least one card; 0 for no limit
-- returns 1 if there are more cards, else 0; and id, score and record of each card
-- cost O(log n + cards of the page), O(log n squared) if the card of ARGV[6] has been removed

local call, list = redis.call, KEYS[2] .. ARGV[1]
local low, high, limit, max_bytes = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[7]), tonumber(ARGV[8])
local descending, after_score, after = ARGV[4] == '1', tonumber(ARGV[5]), ARGV[6]
local bytewise = 'B' < 'a' -- '<' follows the locale of the server

-- Returns whether an id is before another one in the order of a ZSET.
local function is_before(a, b)
	if bytewise then
		return a < b
	end
	for i = 1, math.min(#a, #b) do
		local x, y = string.byte(a, i), string.byte(b, i)
		if x ~= y then
			return x < y
		end
	end
	return #a < #b
end

-- Returns the rank of the first card that is not before the cursor, and whether it is the cursor's.
local function find()
	local score = string.format('%d', after_score)
	local rank = call('ZRANK', list, after)
	if rank and tonumber(call('ZSCORE', list, after)) == after_score then
		return rank, true
	end
	local from, to = call('ZCOUNT', list, '-inf', '(' .. score), call('ZCOUNT', list, '-inf', score)
	while from < to do
		local middle = math.floor((from + to) / 2)
		if is_before(call('ZRANGE', list, middle, middle)[1], after) then
			from = middle + 1
		else
			to = middle
		end
	end
	return from, false
end

local rank, step = nil, descending and -1 or 1
if after_score then
	local found
	rank, found = find()
	if descending then
		rank = rank - 1
	elseif found then
		rank = rank + 1
	end
elseif descending then
	rank = call('ZCOUNT', list, '-inf', ARGV[3]) - 1
else
	rank = call('ZCOUNT', list, '-inf', '(' .. ARGV[2])
end

local page, bytes, n = {0}, 0, call('ZCARD', list)
while rank >= 0 and rank < n do
	local chunk = math.min(50, limit - (#page - 1) / 3 + 1)
	local found = descending and call('ZREVRANGE', list, n - 1 - rank, n - 2 - rank + chunk, 'WITHSCORES')
		or call('ZRANGE', list, rank, rank + chunk - 1, 'WITHSCORES')
	for i = 1, #found, 2 do
		local score = tonumber(found[i+1])
		if score < low or score > high then
			return page
		end
		local record = call('HGET', KEYS[1], found[i]) or '0\n0\n'
		bytes = bytes + #record
		if #page > 3 * limit or max_bytes > 0 and #page > 1 and bytes > max_bytes then
			page[1] = 1
			return page
		end
		page[#page+1], page[#page+2], page[#page+3] = found[i], found[i+1], record
	end
	rank = rank + step * #found / 2
end
return page
