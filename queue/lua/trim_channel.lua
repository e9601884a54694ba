#!lua flags=allow-oom
-- Drops all messages of a channel if the newest one is too old, otherwise the oldest messages
-- beyond a number, and moves the floor.
-- KEYS[1] mq_ch_{channel}
-- KEYS[2] mq_m_{channel}
-- ARGV[1] maximum age of the newest message, ms
-- ARGV[2] messages to keep
-- ARGV[3] most messages to drop in this run, if some are kept
-- ARGV[4] TTL of mq_m, ms, unless it is longer already, or the channel has a state
-- ARGV[5] 1 for a dry run, else 0
-- returns the number of messages dropped, or in a dry run to be dropped
-- cost O(1) to drop all, else O(log n) for each message

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

local meta = redis.call('HMGET', KEYS[2], 'last', 'floor', 'bytes', 'st_keep')
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
if not meta[4] and redis.call('PTTL', KEYS[2]) < tonumber(ARGV[4]) then -- a state keeps the position
	redis.call('PEXPIRE', KEYS[2], ARGV[4])
end
return surplus
