#!lua
-- Stores one message in each of many channels under the next id, drops the oldest while the channel
-- is over a cap, and only then reads who holds subscribers. All have an idempotency key, or none has.
-- Of each channel:
-- KEYS[k+1] mq_ch_{channel}
-- KEYS[k+2] mq_m_{channel}
-- KEYS[k+3] ch_{channel}
-- KEYS[k+4] mq_k_{channel}:<key>, left out without an idempotency key
-- ARGV[7+i] data, compact JSON
-- For all:
-- ARGV[1] cap, messages
-- ARGV[2] cap, bytes
-- ARGV[3] TTL of the messages, ms; they live so long at least, and an eighth longer at most
-- ARGV[4] TTL of mq_m, ms, more than ARGV[3]; likewise, with an eighth of ARGV[3]
-- ARGV[5] TTL of the idempotency keys, ms
-- ARGV[6] what the clock must show at least, Unix ms
-- ARGV[7] 1 when the callers wait for replicas: a duplicate writes its idempotency key again
--         then, since a WAIT covers what was written on its own connection. 2 when nothing is to be stored in a
--         channel that has no messages and no position. Else 0
-- returns for each, with newlines between: id, id before it, duplicate 0 or 1, what the clock shows (Unix ms), the
--         servers; or its error. The id is 0 where nothing was stored, see ARGV[7]
-- cost O(log n) for each message stored or dropped, O(servers)

local call, format, max = redis.call, string.format, math.max
local cap, room, ttl = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = call('TIME')
local ms = max(now[1] * 1000 + math.floor(now[2] / 1000), tonumber(ARGV[6]))
local each = #KEYS / (#ARGV - 7)

-- Each call costs a microsecond of Redis beside what it does: with one message this took 17 us where a script that always
-- counts and renews took 24; of many that come together, 100 bytes each, one takes 20 to 25 on a slower machine. A number
-- that Redis is given, or that is returned, keeps its digits below 2^53; '..' would lose some, and '%d' is exact since
-- Lua's long has 64 bits.
local function append(i)
	local k = (i - 1) * each
	local messages, position, key = KEYS[k+1], KEYS[k+2], each == 4 and KEYS[k+4]
	if key then
		local first = call('GET', key)
		if first then
			if ARGV[7] == '1' then
				call('SET', key, first, 'KEEPTTL')
			end
			return format('%s\n0\n1\n%d\n%s', first, ms, table.concat(call('SMEMBERS', KEYS[k+3]), '\n'))
		end
	end

	local meta = call('HMGET', position, 'last', 'floor', 'bytes', 'until')
	local last, floor, bytes = tonumber(meta[1] or 0), tonumber(meta[2] or 0), tonumber(meta[3] or 0)
	local newest = call('ZREVRANGE', messages, '0', '0', 'WITHSCORES')[2]
	local empty, alone = not newest, true -- alone: nobody else wrote
	if empty and not meta[1] and ARGV[7] == '2' then
		return format('0\n0\n0\n%d\n', ms)
	end
	if empty then
		-- Never written, or the messages expired: then all of them are below the floor.
		floor, bytes = last, 0
	elseif newest ~= meta[1] then
		-- A backend that writes by itself leaves its id here only. Beyond 2^53 it is none.
		alone = false
		if tonumber(newest) > 9007199254740991 then
			newest = call('ZRANGE', messages, '9007199254740991', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2]
		end
		last = max(last, math.floor(tonumber(newest or 0)))
	end

	local id = format('%d', max((ms - 1577836800000) * 4096, last + 1))
	local member = id .. ':' .. ARGV[7+i]
	call('ZADD', messages, id, member)
	bytes = bytes + #member

	-- A member has more than 16 bytes: with fewer in all there is no need to count.
	if not alone or bytes > cap * 16 or bytes > room then
		local held = call('ZCARD', messages)
		while held > 1 and (held > cap or bytes > room) do
			local oldest = call('ZPOPMIN', messages)
			held, bytes = held - 1, bytes - #oldest[1]
			floor = math.min(max(floor, tonumber(oldest[2])), last)
		end
		if held == 1 then
			-- Other writers make the count drift; here it is known again.
			bytes = #member
		end
	end

	if floor == tonumber(meta[2] or -1) then
		call('HSET', position, 'last', id, 'bytes', format('%d', max(bytes, 0)))
	else
		call('HSET', position, 'last', id, 'floor', floor, 'bytes', format('%d', max(bytes, 0)))
	end
	if empty or tonumber(meta[4] or 0) < ms + ttl then
		local eighth = math.floor(ttl / 8)
		call('PEXPIRE', messages, ttl + eighth)
		call('PEXPIRE', position, ARGV[4] + eighth)
		call('HSET', position, 'until', ms + ttl + eighth)
	end
	if key then
		call('SET', key, id, 'PX', ARGV[5])
	end
	return format('%s\n%d\n0\n%d\n%s', id, last, ms, table.concat(call('SMEMBERS', KEYS[k+3]), '\n'))
end

-- What is wrong with one channel is that one's own.
local replies = {}
for i = 1, #ARGV - 7 do
	local done, reply = pcall(append, i)
	replies[i] = (done or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
