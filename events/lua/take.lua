#!lua
-- Leases the outbox and reads its head.
-- KEYS[1] ev_out_{evN}
-- KEYS[2] ev_m_{evN}
-- ARGV[1] largest number of events
-- ARGV[2] largest number of bytes; the first event may exceed it
-- ARGV[3] duration of the lease, ms
-- ARGV[4] retention, ms
-- returns {fencing token, failed attempts, {<seq>:<event>…}}; {} if the outbox is empty, if another
-- process holds the lease, or if the next attempt is not due
-- cost O(events read)

local call = redis.call
if call('EXISTS', KEYS[1]) == 0 then
	return {}
end
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local meta = call('HMGET', KEYS[2], 'until', 'retry_at', 'attempts', 'fence')
if tonumber(meta[1] or 0) > ms or tonumber(meta[2] or 0) > ms then
	return {}
end
local limit, room, events = tonumber(ARGV[1]), tonumber(ARGV[2]), {}
-- In chunks of 16, so that large events beyond the room are not copied.
for from = 0, limit - 1, 16 do
	local chunk = call('LRANGE', KEYS[1], from, math.min(from + 15, limit - 1))
	for _, event in ipairs(chunk) do
		room = room - #event
		if room < 0 and #events > 0 then
			break
		end
		events[#events + 1] = event
	end
	if room < 0 or #chunk < 16 then
		break
	end
end
local fence = tonumber(meta[4] or 0) + 1
call('HSET', KEYS[2], 'fence', fence, 'until', string.format('%d', ms + tonumber(ARGV[3])))
call('PEXPIRE', KEYS[1], ARGV[4])
call('PEXPIRE', KEYS[2], ARGV[4])
return {fence, tonumber(meta[3] or 0), events}
