#!lua flags=no-writes
-- Reads the position of each of many channels and a page of the messages behind an id. Where that is no place
-- to go on from, they begin behind the floor, or behind the nearest id below that is held.
-- Of each channel:
-- KEYS[k+1] mq_ch_{channel}
-- KEYS[k+2] mq_m_{channel}
-- ARGV[a+1] after, an id
-- ARGV[a+2] limit, messages
-- ARGV[a+3] limit, bytes; at least one message is read
-- For all:
-- ARGV[1] limit, bytes of any page, and about of all of them
-- returns for each {line, member...}, or its error, or '' when the pages before were of so many bytes together: then
--         it was not read. In the line, with newlines between: floor, last, hole, id behind which the members begin,
--         complete 0 or 1, more 0 or 1, what the clock shows (Unix ms), score up to which it looked
-- cost O(log n + limit + malformed members passed over, 1024 at most) for each

local call, format = redis.call, string.format
local most, total = tonumber(ARGV[1]), 0
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)

local function read(k, a)
	local after, limit, room = tonumber(ARGV[a+1]), tonumber(ARGV[a+2]), math.min(most, tonumber(ARGV[a+3]))
	local meta = call('HMGET', KEYS[k+2], 'last', 'floor', 'hole')
	local last, floor = tonumber(meta[1] or 0), tonumber(meta[2] or 0)
	-- In chunks, so that a page of large messages does not copy thousands of them; the first of a small page is small,
	-- in which a few large messages may be all. It begins with the id itself:
	-- whether that is held needs no call of its own. Nor does the newest, where the chunk reaches to the end.
	local size = math.min(room < 65536 and 16 or 64, limit + 2)
	local at, chunk, newest = ARGV[a+1], nil, nil
	local function begin()
		return call('ZRANGE', KEYS[k+1], at, '+inf', 'BYSCORE', 'LIMIT', 0, size, 'WITHSCORES')
	end
	if limit > 0 then
		chunk = begin()
		newest = #chunk < 2 * size and chunk[#chunk]
	end
	newest = newest or call('ZREVRANGE', KEYS[k+1], '0', '0', 'WITHSCORES')[2]
	local empty = not newest
	if empty then
		floor = last
	else
		if tonumber(newest) > 9007199254740991 then -- that is no id
			newest = call('ZRANGE', KEYS[k+1], '9007199254740991', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2]
		end
		last = math.max(last, math.floor(tonumber(newest or 0)))
	end

	local complete = after == floor or after == last
	if empty or after == last then
		chunk = {}
	else
		chunk = chunk or begin()
		complete = complete or tonumber(chunk[2] or -1) == after
	end
	local from = after
	if not complete then
		local below = empty and {} or call('ZRANGE', KEYS[k+1], '(' .. at, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')
		from = math.max(floor, math.floor(tonumber(below[2] or 0)))
		at = from == floor and '0' or below[2]
		chunk = empty and {} or call('ZRANGE', KEYS[k+1], '(' .. at, '+inf', 'BYSCORE', 'LIMIT', 0, size, 'WITHSCORES')
	end

	local members, bytes, more = {''}, 0, 0 -- the line comes first, when it is known
	local scanned, farthest, above = 0, limit + 1024, complete and after or -1
	while true do
		for i = 1, #chunk, 2 do
			local member, score = chunk[i], chunk[i + 1]
			local id = string.match(member, '^(%d+):')
			-- As strings first, that is faster; some versions of Redis write a score as 7.3e+14.
			if id and (id == score or tonumber(id) == tonumber(score)) and tonumber(id) > above then
				if #members > limit or (#members > 1 and bytes + #member > room) then
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
		if scanned > farthest then
			more = 1
			break
		end
		size = 64
		chunk = call('ZRANGE', KEYS[k+1], '(' .. at, '+inf', 'BYSCORE', 'LIMIT', 0, size, 'WITHSCORES')
	end

	total = total + bytes
	members[1] = format('%.0f\n%.0f\n%s\n%.0f\n%d\n%d\n%d\n%s', floor, last, meta[3] or '0', from, complete and 1 or 0, more, ms, at)
	return members
end

-- What is wrong with one channel is that one's own.
local replies = {}
for i = 1, #KEYS / 2 do
	local done, reply = true, ''
	if total < most then
		done, reply = pcall(read, 2 * i - 2, 3 * i - 2)
	end
	replies[i] = (done or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
