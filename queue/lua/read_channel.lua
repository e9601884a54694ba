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

local after = tonumber(ARGV[1])
local meta = redis.call('HMGET', KEYS[2], 'last', 'floor', 'hole')
local last, floor = tonumber(meta[1] or 0), tonumber(meta[2] or 0)
if redis.call('EXISTS', KEYS[1]) == 0 then
	floor = last
else
	local newest = redis.call('ZRANGE', KEYS[1], '9007199254740991', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')
	last = math.max(last, math.floor(tonumber(newest[2] or 0)))
end

local complete = after == floor or after == last or redis.call('ZCOUNT', KEYS[1], ARGV[1], ARGV[1]) > 0
local from, at = after, ARGV[1]
if not complete then
	local below = redis.call('ZRANGE', KEYS[1], '(' .. ARGV[1], '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')
	from = math.max(floor, math.floor(tonumber(below[2] or 0)))
	at = from == floor and '0' or below[2]
end
local limit, room = tonumber(ARGV[2]), tonumber(ARGV[3])
local members, bytes, more = {}, 0, 0

-- In chunks, so that a page of large messages does not copy thousands of them.
local scanned, most = 0, limit + 1024
repeat
	local chunk = redis.call('ZRANGE', KEYS[1], '(' .. at, '+inf', 'BYSCORE', 'LIMIT', 0, 64, 'WITHSCORES')
	for i = 1, #chunk, 2 do
		local member, score = chunk[i], chunk[i + 1]
		local id = string.match(member, '^(%d+):')
		-- As strings first, that is faster; some versions of Redis write a score as 7.3e+14.
		if id and (id == score or tonumber(id) == tonumber(score)) then
			if #members == limit or (#members > 0 and bytes + #member > room) then
				more = 1
				break
			end
			members[#members + 1] = member
			bytes = bytes + #member
		end
		at = score
	end
	scanned = scanned + 64
	if scanned > most and #chunk == 128 then
		more = 1
	end
until more == 1 or #chunk < 128

return {string.format('%.0f', floor), string.format('%.0f', last), meta[3] or '0', string.format('%.0f', from), complete and 1 or 0, more, at, members}
