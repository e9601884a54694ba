#!lua
-- Moves dead letters, oldest first, to the end of the outbox while it has room. The events keep
-- their ids.
-- KEYS[1] ev_out_{evN}
-- KEYS[2] ev_dead_{evN}
-- KEYS[3] ev_m_{evN}
-- ARGV[1] largest number of events
-- ARGV[2] limit of the outbox, events
-- ARGV[3] limit of the outbox, bytes
-- ARGV[4] retention, ms
-- returns the number of events moved
-- cost O(events moved)

local call = redis.call
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local seq = tonumber(call('HGET', KEYS[3], 'last') or 0)
local length, bytes = call('LLEN', KEYS[1]), 0
if length > 0 then
	bytes = tonumber(call('HGET', KEYS[3], 'out_bytes') or 0)
end
local moved, letterBytes = 0, 0
while moved < tonumber(ARGV[1]) do
	local letter = call('LINDEX', KEYS[2], 0)
	if not letter or length >= tonumber(ARGV[2]) or length > 0 and bytes + #letter > tonumber(ARGV[3]) then
		break
	end
	call('LPOP', KEYS[2])
	-- A sequence number is at least 4096 × the time in ms since 2020-01-01 UTC (1577836800000).
	seq = math.max((ms - 1577836800000) * 4096, seq + 1)
	local event = string.format('%d', seq) .. string.match(letter, '^%a+:%d+(:.*)$')
	length = call('RPUSH', KEYS[1], event)
	moved, letterBytes, bytes = moved + 1, letterBytes + #letter, bytes + #event
end
if moved > 0 then
	call('HSET', KEYS[3], 'last', string.format('%d', seq), 'out_bytes', bytes)
	call('HINCRBY', KEYS[3], 'dead_bytes', -letterBytes)
	call('PEXPIRE', KEYS[1], ARGV[4])
	call('PEXPIRE', KEYS[3], ARGV[4])
end
return moved
