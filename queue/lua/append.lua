-- A piece of other scripts: append stores one message in a channel under the next id, and drops
-- the oldest messages beyond a cap.
-- ARGV[1] most messages
-- ARGV[2] most bytes
-- ARGV[3] minimum TTL of the messages, ms; they live up to an eighth longer
-- ARGV[4] minimum TTL of mq_m, ms, more than ARGV[3]; it lives up to an eighth of ARGV[3] longer
-- ARGV[6] minimum that the clock must show, Unix ms
-- ARGV[7] 0 usually; 1 if the callers wait for replicas; 2 if nothing is to be stored in a
--         channel without messages and position; 3 for both
-- returns the id and the id before it; or nothing, see ARGV[7]
-- cost O(log n) for each message stored or dropped

local call, format, max = redis.call, string.format, math.max
local max_messages, max_bytes, ttl = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = call('TIME')
local ms = max(now[1] * 1000 + math.floor(now[2] / 1000), tonumber(ARGV[6]))

-- messages is mq_ch_{channel}, position is mq_m_{channel}. meta is what the caller has read of
-- position: last, floor, bytes, until, st_keep. The last arguments are further fields and values
-- for position.
--
-- Each call of a command costs a microsecond in addition to its work. For one message
-- append_channel took 17 us, and a script that always counts and renews took 24 us. Numbers below
-- 2^53 are formatted with '%d', which is exact since Lua's long has 64 bits. '..' would lose
-- digits.
local function append(messages, position, meta, data, ...)
	local last, floor, bytes = tonumber(meta[1] or 0), tonumber(meta[2] or 0), tonumber(meta[3] or 0)
	local newest = call('ZREVRANGE', messages, '0', '0', 'WITHSCORES')[2]
	local empty, foreign = not newest, false -- foreign: the newest message is of another writer
	if empty and not meta[1] and ARGV[7] >= '2' then
		return
	end
	if empty then
		-- The channel is new, or its messages expired.
		floor, bytes = last, 0
	elseif newest ~= meta[1] then
		-- A message of another writer: last does not include it. A score above 2^53 is not an id.
		foreign = true
		if tonumber(newest) > 9007199254740991 then
			newest = call('ZRANGE', messages, '9007199254740991', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2]
		end
		last = max(last, math.floor(tonumber(newest or 0)))
	end

	local id = format('%d', max((ms - 1577836800000) * 4096, last + 1))
	local member = id .. ':' .. data
	call('ZADD', messages, id, member)
	bytes = bytes + #member

	-- Each member has more than 16 bytes. If all have at most max_messages * 16 bytes, they are fewer
	-- than max_messages, and no ZCARD is needed.
	if foreign or bytes > max_messages * 16 or bytes > max_bytes then
		local held = call('ZCARD', messages)
		while held > 1 and (held > max_messages or bytes > max_bytes) do
			local oldest = call('ZPOPMIN', messages)
			held, bytes = held - 1, bytes - #oldest[1]
			floor = math.min(max(floor, tonumber(oldest[2])), last)
		end
		if held == 1 then
			-- Other writers make the number of bytes drift; here it is known exactly.
			bytes = #member
		end
	end

	if floor == tonumber(meta[2] or -1) then
		call('HSET', position, 'last', id, 'bytes', format('%d', max(bytes, 0)), ...)
	else
		call('HSET', position, 'last', id, 'floor', floor, 'bytes', format('%d', max(bytes, 0)), ...)
	end
	if empty or tonumber(meta[4] or 0) < ms + ttl then
		local eighth = math.floor(ttl / 8)
		call('PEXPIRE', messages, ttl + eighth)
		if not meta[5] then -- a channel with a state keeps its position
			call('PEXPIRE', position, ARGV[4] + eighth)
		end
		call('HSET', position, 'until', ms + ttl + eighth)
	end
	return id, last
end
