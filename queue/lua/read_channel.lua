#!lua flags=no-writes
-- Reads the position of a channel and a page of the messages behind an id. Where that is no place
-- to go on from, they begin behind the floor, or behind the nearest id below that is held.
-- KEYS[1] mq_ch_{channel}
-- KEYS[2] mq_m_{channel}
-- ARGV[1] after, an id
-- ARGV[2] limit, messages
-- ARGV[3] limit, bytes
-- returns {floor, last, hole, id behind which they begin, complete 0 or 1, more 0 or 1, score up to which it looked, {member...}}
-- cost O(log n + limit + malformed members passed over, 1024 at most)

local call = redis.call
local after, limit, room = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local meta = call('HMGET', KEYS[2], 'last', 'floor', 'hole')
local last, floor = tonumber(meta[1] or 0), tonumber(meta[2] or 0)
local newest = call('ZREVRANGE', KEYS[1], '0', '0', 'WITHSCORES')[2]
local empty = not newest
if empty then
	floor = last
else
	if tonumber(newest) > 9007199254740991 then -- that is no id
		newest = call('ZRANGE', KEYS[1], '9007199254740991', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2]
	end
	last = math.max(last, math.floor(tonumber(newest or 0)))
end

-- In chunks, so that a page of large messages does not copy thousands of them. The first begins with the id itself:
-- whether that is held needs no call of its own.
local size = limit == 0 and 16 or 64
local at, chunk = ARGV[1], {}
local complete = after == floor or after == last
if not empty and after ~= last then
	chunk = call('ZRANGE', KEYS[1], at, '+inf', 'BYSCORE', 'LIMIT', 0, size, 'WITHSCORES')
	complete = complete or tonumber(chunk[2] or -1) == after
end
local from = after
if not complete then
	local below = empty and {} or call('ZRANGE', KEYS[1], '(' .. at, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')
	from = math.max(floor, math.floor(tonumber(below[2] or 0)))
	at = from == floor and '0' or below[2]
	chunk = empty and {} or call('ZRANGE', KEYS[1], '(' .. at, '+inf', 'BYSCORE', 'LIMIT', 0, size, 'WITHSCORES')
end

local members, bytes, more = {}, 0, 0
local scanned, most, above = 0, limit + 1024, complete and after or -1
while true do
	for i = 1, #chunk, 2 do
		local member, score = chunk[i], chunk[i + 1]
		local id = string.match(member, '^(%d+):')
		-- As strings first, that is faster; some versions of Redis write a score as 7.3e+14.
		if id and (id == score or tonumber(id) == tonumber(score)) and tonumber(id) > above then
			if #members == limit or (#members > 0 and bytes + #member > room) then
				more = 1
				break
			end
			members[#members + 1] = member
			bytes = bytes + #member
		end
		at = score
	end
	scanned = scanned + size
	if more == 1 or #chunk < 2 * size then
		break
	end
	if scanned > most then
		more = 1
		break
	end
	chunk = call('ZRANGE', KEYS[1], '(' .. at, '+inf', 'BYSCORE', 'LIMIT', 0, size, 'WITHSCORES')
end

return {string.format('%.0f', floor), string.format('%.0f', last), meta[3] or '0', string.format('%.0f', from), complete and 1 or 0, more, at, members}
