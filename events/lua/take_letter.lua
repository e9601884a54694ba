#!lua flags=allow-oom
-- Removes one dead letter. It may append its event to the outbox, under its id.
-- KEYS[1] ev_out_{evN}
-- KEYS[2] ev_dead_{evN}
-- KEYS[3] ev_m_{evN}
-- ARGV[1] id of the event
-- ARGV[2] 1 to append the event to the outbox, 0 to drop it
-- ARGV[3] limit of the outbox, events
-- ARGV[4] limit of the outbox, bytes
-- ARGV[5] retention, ms
-- returns 1; 0 if there is no such letter; -1 if the outbox has no room for the event
-- cost O(dead letters)

local start, found = '{"id":"' .. ARGV[1] .. '",', nil
for from = 0, call('LLEN', KEYS[2]) - 1, 16 do
	for _, letter in ipairs(call('LRANGE', KEYS[2], from, from + 15)) do
		local _, head = string.find(letter, '^%a+:%d+:')
		if string.sub(letter, head + 1, head + #start) == start then
			found = letter
			break
		end
	end
	if found then
		break
	end
end
if not found then
	return 0
end
if ARGV[2] == '1' and not append_letter(KEYS[1], KEYS[3], found, tonumber(ARGV[3]), tonumber(ARGV[4]), ARGV[5]) then
	return -1
end
call('LREM', KEYS[2], 1, found)
call('HINCRBY', KEYS[3], 'dead_bytes', -#found)
return 1
