#!lua
-- Checks that the store still has a message whose push it acknowledged. If it lost the message, as
-- in a failover, the script appends a marker that reports the loss to all readers, unless there is
-- one already that covers it. It finds such a marker among the next 1024 messages.
-- KEYS[1] mq_ch_{channel}
-- KEYS[2] mq_m_{channel}
-- KEYS[3] ch_{channel}
-- ARGV[1] id of the message
-- ARGV[2] TTL of the messages, ms
-- ARGV[3] TTL of mq_m, ms, more than ARGV[2]; an older message is not lost, but expired
-- ARGV[4] minimum that the clock must show, Unix ms
-- returns {} if the message is not lost, else {id of the marker, id before it, its
--         payload, {server...}}
-- cost O(log n + servers); after two failovers O(log n + 1024 + servers)

local meta = redis.call('HMGET', KEYS[2], 'last', 'floor', 'bytes', 'lost', 'st_keep')
local last, floor, bytes = tonumber(meta[1] or 0), tonumber(meta[2] or 0), tonumber(meta[3] or 0)
local id = tonumber(ARGV[1])
local now = redis.call('TIME')
local ms = math.max(now[1] * 1000 + math.floor(now[2] / 1000), tonumber(ARGV[4]))
if ms - 1577836800000 - math.floor(id / 4096) > tonumber(ARGV[3]) then
	return {}
end
if id <= floor or redis.call('ZCOUNT', KEYS[1], ARGV[1], ARGV[1]) > 0 then
	return {}
end
local lost = tonumber(meta[4] or 0)
if id <= lost then
	if redis.call('ZCOUNT', KEYS[1], ARGV[1], meta[4]) == 0 then
		return {}
	end
	-- There are messages between the two, so another failover lost this one.
	for _, member in ipairs(redis.call('ZRANGE', KEYS[1], ARGV[1], '+inf', 'BYSCORE', 'LIMIT', 0, 1024)) do
		local after, to = string.match(member, '^%d+:!(%d+)%-(%d+)$')
		if after and tonumber(after) < id and id <= tonumber(to) then
			return {}
		end
	end
end
if redis.call('ZCARD', KEYS[1]) == 0 then
	if last >= id then
		return {} -- it expired
	end
	floor, bytes = last, 0
else
	local newest = redis.call('ZRANGE', KEYS[1], '9007199254740991', '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')
	last = math.max(last, math.floor(tonumber(newest[2] or 0)))
end
local below = redis.call('ZRANGE', KEYS[1], '(' .. ARGV[1], '-inf', 'BYSCORE', 'REV', 'LIMIT', 0, 1, 'WITHSCORES')
local after = math.max(floor, math.floor(tonumber(below[2] or 0)))

-- The marker's id is above the lost id too, since no id is assigned twice.
local marker = string.format('%.0f', math.max((ms - 1577836800000) * 4096, last + 1, id + 1))
local payload = '!' .. string.format('%.0f', after) .. '-' .. ARGV[1]
local member = marker .. ':' .. payload
redis.call('ZADD', KEYS[1], marker, member)
redis.call('HSET', KEYS[2], 'last', marker, 'floor', string.format('%.0f', floor),
	'bytes', string.format('%.0f', bytes + #member), 'lost', id > lost and ARGV[1] or meta[4],
	'hole', marker, 'until', '0')
redis.call('PEXPIRE', KEYS[1], ARGV[2])
if not meta[5] then -- a channel with a state keeps its position
	redis.call('PEXPIRE', KEYS[2], ARGV[3])
end
return {marker, string.format('%.0f', last), payload, redis.call('SMEMBERS', KEYS[3])}
