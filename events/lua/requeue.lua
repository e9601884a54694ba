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

local most, most_bytes = tonumber(ARGV[2]), tonumber(ARGV[3])
local moved, letterBytes = 0, 0
while moved < tonumber(ARGV[1]) do
	local letter = call('LINDEX', KEYS[2], 0)
	if not letter or not append_letter(KEYS[1], KEYS[3], letter, most, most_bytes, ARGV[4]) then
		break
	end
	call('LPOP', KEYS[2])
	moved, letterBytes = moved + 1, letterBytes + #letter
end
if moved > 0 then
	call('HINCRBY', KEYS[3], 'dead_bytes', -letterBytes)
end
return moved
