#!lua
-- Stores one message in a channel under the next id, drops the oldest while the channel
-- is over a cap, and only then reads who holds subscribers.
-- KEYS[1] mq_ch_{channel}
-- KEYS[2] mq_m_{channel}
-- KEYS[3] ch_{channel}
-- KEYS[4] mq_k_{channel}:<key>, left out without an idempotency key
-- ARGV[1] data, compact JSON
-- ARGV[2] cap, messages
-- ARGV[3] cap, bytes
-- ARGV[4] TTL of the messages, ms; they live so long at least, and an eighth longer at most
-- ARGV[5] TTL of mq_m, ms; likewise, with an eighth of ARGV[4]
-- ARGV[6] TTL of the idempotency key, ms
-- ARGV[7] what the clock must show at least, Unix ms
-- ARGV[8] 1 when the caller waits for replicas, left out else: a duplicate writes its idempotency
--         key again then, since a WAIT covers what was written on its own connection
-- returns {id, id before it, duplicate 0 or 1, {server...}, what the clock shows, Unix ms, 0 for a duplicate}
-- cost O(log n) for each message stored or dropped, O(servers)

local call = redis.call
if KEYS[4] then
	local first = call('GET', KEYS[4])
	if first then
		if ARGV[8] then
			call('SET', KEYS[4], first, 'KEEPTTL')
		end
		return {first, 0, 1, call('SMEMBERS', KEYS[3]), 0}
	end
end

-- Each call costs a microsecond of Redis beside what it does: this script takes 17 us where one that always counts
-- and renews took 24. A number that Redis is given, or that is returned, keeps its digits below 2^53; '..' would
-- lose some, and '%d' is exact since Lua's long has 64 bits.
local meta = call('HMGET', KEYS[2], 'last', 'floor', 'bytes', 'until')
local last, floor, bytes = tonumber(meta[1] or 0), tonumber(meta[2] or 0), tonumber(meta[3] or 0)
local newest = call('ZREVRANGE', KEYS[1], '0', '0', 'WITHSCORES')[2]
local empty, alone = not newest, true -- alone: nobody else wrote
if empty then
	-- Never written, or the messages expired: then all of them are below the floor.
	floor, bytes = last, 0
elseif newest ~= meta[1] then
	-- A backend that writes by itself leaves its id here only. Beyond 2^53 it is none.
	alone = false
	if tonumber(newest) > 9007199254740991 then
		newest = call('ZRANGE', KEYS[1], '9007199254740991', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')[2]
	end
	last = math.max(last, math.floor(tonumber(newest or 0)))
end

local now = call('TIME')
local ms = math.max(now[1] * 1000 + math.floor(now[2] / 1000), tonumber(ARGV[7]))
local id = string.format('%d', math.max((ms - 1577836800000) * 4096, last + 1))
local member = id .. ':' .. ARGV[1]
call('ZADD', KEYS[1], id, member)
bytes = bytes + #member

-- A member has more than 16 bytes: with fewer in all there is no need to count.
local cap, room = tonumber(ARGV[2]), tonumber(ARGV[3])
if not alone or bytes > cap * 16 or bytes > room then
	local held = call('ZCARD', KEYS[1])
	while held > 1 and (held > cap or bytes > room) do
		local oldest = call('ZPOPMIN', KEYS[1])
		held, bytes = held - 1, bytes - #oldest[1]
		floor = math.min(math.max(floor, tonumber(oldest[2])), last)
	end
	if held == 1 then
		-- Other writers make the count drift; here it is known again.
		bytes = #member
	end
end

if floor == tonumber(meta[2] or -1) then
	call('HSET', KEYS[2], 'last', id, 'bytes', string.format('%d', math.max(bytes, 0)))
else
	call('HSET', KEYS[2], 'last', id, 'floor', floor, 'bytes', string.format('%d', math.max(bytes, 0)))
end
local ttl = tonumber(ARGV[4])
if empty or tonumber(meta[4] or 0) < ms + ttl then
	local eighth = math.floor(ttl / 8)
	call('PEXPIRE', KEYS[1], ttl + eighth)
	call('PEXPIRE', KEYS[2], ARGV[5] + eighth)
	call('HSET', KEYS[2], 'until', ms + ttl + eighth)
end
if KEYS[4] then
	call('SET', KEYS[4], id, 'PX', ARGV[6])
end
return {id, last, 0, call('SMEMBERS', KEYS[3]), ms}
