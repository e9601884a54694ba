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
-- ARGV[4] TTL of the messages, ms
-- ARGV[5] TTL of mq_m, ms
-- ARGV[6] TTL of the idempotency key, ms
-- ARGV[7] what the clock must show at least, Unix ms
-- ARGV[8] 1 when the caller waits for replicas, left out else: a duplicate writes its idempotency
--         key again then, since a WAIT covers what was written on its own connection
-- returns {id, id before it, duplicate 0 or 1, {server...}, what the clock shows, Unix ms, 0 for a duplicate}
-- cost O(log n) for each message stored or dropped, O(servers)

if KEYS[4] then
	local first = redis.call('GET', KEYS[4])
	if first then
		if ARGV[8] then
			redis.call('SET', KEYS[4], first, 'KEEPTTL')
		end
		return {first, '0', 1, redis.call('SMEMBERS', KEYS[3]), '0'}
	end
end

local held = redis.call('ZCARD', KEYS[1])
local meta = redis.call('HMGET', KEYS[2], 'last', 'floor', 'bytes')
local last, floor, bytes = tonumber(meta[1] or 0), tonumber(meta[2] or 0), tonumber(meta[3] or 0)
if held == 0 then
	-- Never written, or the messages expired: then all of them are below the floor.
	floor, bytes = last, 0
else
	-- A backend that writes by itself leaves its id here only. Beyond 2^53 it is none.
	local newest = redis.call('ZRANGE', KEYS[1], '9007199254740991', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')
	last = math.max(last, math.floor(tonumber(newest[2] or 0)))
end

local now = redis.call('TIME')
local ms = math.max(now[1] * 1000 + math.floor(now[2] / 1000), tonumber(ARGV[7]))
local id = string.format('%.0f', math.max((ms - 1577836800000) * 4096, last + 1))
local member = id .. ':' .. ARGV[1]
redis.call('ZADD', KEYS[1], id, member)
held, bytes = held + 1, bytes + #member

local cap, room = tonumber(ARGV[2]), tonumber(ARGV[3])
while held > 1 and (held > cap or bytes > room) do
	local oldest = redis.call('ZPOPMIN', KEYS[1])
	held, bytes = held - 1, bytes - #oldest[1]
	floor = math.min(math.max(floor, tonumber(oldest[2])), last)
end
if held == 1 then
	-- Other writers make the count drift; here it is known again.
	bytes = #member
end

redis.call('HSET', KEYS[2], 'last', id, 'floor', string.format('%.0f', floor),
	'bytes', string.format('%.0f', math.max(bytes, 0)))
redis.call('PEXPIRE', KEYS[1], ARGV[4])
redis.call('PEXPIRE', KEYS[2], ARGV[5])
if KEYS[4] then
	redis.call('SET', KEYS[4], id, 'PX', ARGV[6])
end
return {id, string.format('%.0f', last), 0, redis.call('SMEMBERS', KEYS[3]), string.format('%.0f', ms)}
