#!lua
-- Leases the list of events and reads its head.
-- KEYS[1] ev_out_{evN}
-- KEYS[2] ev_m_{evN}
-- ARGV[1] most events
-- ARGV[2] most bytes, one event at least
-- ARGV[3] how long the lease lasts, ms
-- ARGV[4] retention, ms
-- returns {fence, failed attempts, {<place>:<event>…}}; {} when there are no events, the lease is another's, or
-- the next attempt is not due
-- cost O(events)

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
local most, room, events = tonumber(ARGV[1]), tonumber(ARGV[2]), {}
-- In chunks, so that a page of large events does not copy many pages.
for from = 0, most - 1, 16 do
	local chunk = call('LRANGE', KEYS[1], from, math.min(from + 15, most - 1))
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
