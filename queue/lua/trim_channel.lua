#!lua flags=allow-oom
-- Drops all messages of a channel when the newest is too old, else the oldest that are
-- too many, and moves the floor.
-- KEYS[1] mq_ch_{channel}
-- KEYS[2] mq_m_{channel}
-- ARGV[1] age, ms
-- ARGV[2] how many to keep, messages
-- ARGV[3] most to drop in this call when some are kept, messages
-- ARGV[4] TTL of mq_m, ms, unless it has more
-- ARGV[5] dry run, 1 or 0
-- returns how many went, or in a dry run would go
-- cost O(1) for all, O(log n) for each message when some are kept

local held = redis.call('ZCARD', KEYS[1])
if held == 0 then
	return 0
end
local newest = redis.call('ZRANGE', KEYS[1], '9007199254740991', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')
newest = math.floor(tonumber(newest[2] or 0))
local now = redis.call('TIME')
local age = now[1] * 1000 + math.floor(now[2] / 1000) - 1577836800000 - math.floor(newest / 4096)
local surplus = math.max(held - tonumber(ARGV[2]), 0)
if age > tonumber(ARGV[1]) then
	surplus = held
end
if surplus == 0 or ARGV[5] == '1' then
	return surplus
end

local meta = redis.call('HMGET', KEYS[2], 'last', 'floor', 'bytes')
local last, floor, bytes = math.max(tonumber(meta[1] or 0), newest), tonumber(meta[2] or 0), tonumber(meta[3] or 0)
if surplus == held then
	redis.call('UNLINK', KEYS[1])
	floor, bytes = last, 0
else
	surplus = math.min(surplus, tonumber(ARGV[3]))
	local oldest = redis.call('ZPOPMIN', KEYS[1], surplus)
	for i = 1, #oldest, 2 do
		bytes = bytes - #oldest[i]
	end
	floor = math.min(math.max(floor, tonumber(oldest[#oldest])), last)
end
redis.call('HSET', KEYS[2], 'last', string.format('%.0f', last), 'floor', string.format('%.0f', floor),
	'bytes', string.format('%.0f', math.max(bytes, 0)), 'until', '0')
if redis.call('PTTL', KEYS[2]) < tonumber(ARGV[4]) then
	redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
return surplus
