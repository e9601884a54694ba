#!lua
-- Stores one message in each of many channels under the next id, drops the oldest messages beyond a
-- cap, and then reads the servers with subscribers. Either all messages have an idempotency key, or
-- none.
-- For each channel:
-- KEYS[k+1] mq_ch_{channel}
-- KEYS[k+2] mq_m_{channel}
-- KEYS[k+3] ch_{channel}
-- KEYS[k+4] mq_k_{channel}:<key>, omitted without an idempotency key
-- ARGV[7+i] data, compact JSON
-- For all:
-- ARGV[1] most messages
-- ARGV[2] most bytes
-- ARGV[3] minimum TTL of the messages, ms; they live up to an eighth longer
-- ARGV[4] minimum TTL of mq_m, ms, more than ARGV[3]; it lives up to an eighth of ARGV[3] longer
-- ARGV[5] TTL of the idempotency keys, ms
-- ARGV[6] minimum that the clock must show, Unix ms
-- ARGV[7] 0 usually; 1 if the callers wait for replicas; 2 if nothing is to be stored in a
--         channel without messages and position
-- returns for each channel, separated by newlines: id, id before it, duplicate 0 or 1, the
--         clock (Unix ms), the servers; or an error. The id is 0 if nothing was stored, see
--         ARGV[7]
-- cost O(log n) for each message stored or dropped, O(servers)

local call, format, max = redis.call, string.format, math.max
local max_messages, max_bytes, ttl = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3])
local now = call('TIME')
local ms = max(now[1] * 1000 + math.floor(now[2] / 1000), tonumber(ARGV[6]))
local keys_per_channel = #KEYS / (#ARGV - 7)

-- Each call of a command costs a microsecond in addition to its work. For one message this script
-- took 17 us, and a script that always counts and renews took 24 us. Numbers below 2^53 are
-- formatted with '%d', which is exact since Lua's long has 64 bits. '..' would lose digits.
local function append(i)
	local k = (i - 1) * keys_per_channel
	local messages, position, key = KEYS[k+1], KEYS[k+2], keys_per_channel == 4 and KEYS[k+4]
	if key then
		local first = call('GET', key)
		if first then
			if ARGV[7] == '1' then
				-- A WAIT covers only writes on its own connection.
				call('SET', key, first, 'KEEPTTL')
			end
			return format('%s\n0\n1\n%d\n%s', first, ms, table.concat(call('SMEMBERS', KEYS[k+3]), '\n'))
		end
	end

	local meta = call('HMGET', position, 'last', 'floor', 'bytes', 'until')
	local last, floor, bytes = tonumber(meta[1] or 0), tonumber(meta[2] or 0), tonumber(meta[3] or 0)
	local newest = call('ZREVRANGE', messages, '0', '0', 'WITHSCORES')[2]
	local empty, foreign = not newest, false -- foreign: the newest message is of another writer
	if empty and not meta[1] and ARGV[7] == '2' then
		return format('0\n0\n0\n%d\n', ms)
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
	local member = id .. ':' .. ARGV[7+i]
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

-- An error of one channel does not affect the others.
local replies = {}
for i = 1, #ARGV - 7 do
	local ok, reply = pcall(append, i)
	replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
