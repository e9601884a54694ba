#!lua flags=no-writes
-- Reads the position of each of many channels, and a page of the messages after an id. If messages
-- are missing after that id, the page begins after the floor, or after the nearest held id below.
-- For each channel:
-- KEYS[k+1] mq_ch_{channel}
-- KEYS[k+2] mq_m_{channel}
-- ARGV[a+1] after, an id
-- ARGV[a+2] most messages
-- ARGV[a+3] most bytes; at least one message is read
-- ARGV[a+4] an id, or 0: no message is returned unless none is missing, and the page has the last
--           message or an id that is not below this one
-- For all:
-- ARGV[1] most bytes of one page; after pages with this sum, no further channel is read
-- returns for each channel {header, member...}; '' if it was not read, see ARGV[1]; or an
--         error. The header has, separated by newlines: floor, last, last marker, id after which
--         the members begin, complete 0 or 1, more 0 or 1, the clock (Unix ms), score of the last
--         member checked
-- cost O(log n + limit + malformed members skipped, at most 1024) for each

local call, format = redis.call, string.format
local max_total, total = tonumber(ARGV[1]), 0
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)

local function read(k, a)
	local after, limit = tonumber(ARGV[a+1]), tonumber(ARGV[a+2])
	local max_bytes = math.min(max_total, tonumber(ARGV[a+3]))
	local meta = call('HMGET', KEYS[k+2], 'last', 'floor', 'hole')
	local last, floor = tonumber(meta[1] or 0), tonumber(meta[2] or 0)
	-- Reads in chunks, so that a page of large messages does not copy thousands of them. The first
	-- chunk of a small page is small, since a few large messages may fill the page. It begins at
	-- the id itself: if the message with this id is held, it is the first element. If the chunk
	-- reaches the end, it also has the newest message.
	local size = math.min(max_bytes < 65536 and 16 or 64, limit + 2)
	local cursor, chunk, newest = ARGV[a+1], nil, nil
	local function first_chunk()
		return call('ZRANGE', KEYS[k+1], cursor, '+inf', 'BYSCORE', 'LIMIT', 0, size, 'WITHSCORES')
	end
	if limit > 0 then
		chunk = first_chunk()
		newest = #chunk < 2 * size and chunk[#chunk]
	end
	newest = newest or call('ZREVRANGE', KEYS[k+1], '0', '0', 'WITHSCORES')[2]
	local empty = not newest
	if empty then
		floor = last
	else
		if tonumber(newest) > 9007199254740991 then -- not an id
			newest = call('ZRANGE', KEYS[k+1], '9007199254740991', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2]
		end
		last = math.max(last, math.floor(tonumber(newest or 0)))
	end

	local complete = after == floor or after == last
	if empty or after == last then
		chunk = {}
	else
		chunk = chunk or first_chunk()
		complete = complete or tonumber(chunk[2] or -1) == after
	end
	local from = after
	if not complete then
		local below = empty and {} or call('ZRANGE', KEYS[k+1], '(' .. cursor, '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')
		from = math.max(floor, math.floor(tonumber(below[2] or 0)))
		cursor = from == floor and '0' or below[2]
		chunk = empty and {} or call('ZRANGE', KEYS[k+1], '(' .. cursor, '+inf', 'BYSCORE', 'LIMIT', 0, size, 'WITHSCORES')
	end

	local members, bytes, more = {''}, 0, 0 -- the header is set below
	local reach, at = tonumber(ARGV[a+4]), 0
	local scanned, max_scanned, above = 0, limit + 1024, complete and after or -1
	while true do
		for i = 1, #chunk, 2 do
			local member, score = chunk[i], chunk[i + 1]
			local id = string.match(member, '^(%d+):')
			-- Compares strings first, which is faster. Some versions of Redis format a score as 7.3e+14.
			if id and (id == score or tonumber(id) == tonumber(score)) and tonumber(id) > above then
				if #members > limit or (#members > 1 and bytes + #member > max_bytes) then
					more = 1
					break
				end
				members[#members + 1] = member
				bytes, at = bytes + #member, tonumber(id)
			end
			cursor = score
		end
		scanned = scanned + size
		if more == 1 or #chunk < 2 * size then
			break
		end
		if scanned > max_scanned then
			more = 1
			break
		end
		size = 64
		chunk = call('ZRANGE', KEYS[k+1], '(' .. cursor, '+inf', 'BYSCORE', 'LIMIT', 0, size, 'WITHSCORES')
	end

	if reach > 0 and (not complete or more == 1 and at < reach) then
		members, bytes = {}, 0
	end
	total = total + bytes
	members[1] = format('%.0f\n%.0f\n%s\n%.0f\n%d\n%d\n%d\n%s',
		floor, last, meta[3] or '0', from, complete and 1 or 0, more, ms, cursor)
	return members
end

-- An error of one channel does not affect the others.
local replies = {}
for i = 1, #KEYS / 2 do
	local ok, reply = true, ''
	if total < max_total then
		ok, reply = pcall(read, 2 * i - 2, 4 * i - 3)
	end
	replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
