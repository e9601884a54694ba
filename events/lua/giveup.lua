#!lua flags=allow-oom
-- Moves events from the head of the list to the dead letters, and ends the lease or renews it.
-- KEYS[1] ev_out_{evN}
-- KEYS[2] ev_dead_{evN}
-- KEYS[3] ev_m_{evN}
-- ARGV[1] fence of the lease
-- ARGV[2] place up to which they may go
-- ARGV[3] only those that are older, ms; negative for all
-- ARGV[4] why, a word
-- ARGV[5] when to try again what stays, ms from now, and one more attempt has failed; negative: none has
-- ARGV[6] how long the lease lasts from now, ms; 0 ends it
-- ARGV[7] cap of the dead letters, events
-- ARGV[8] cap of the dead letters, bytes
-- ARGV[9] retention, ms
-- returns how many were moved, -1 when somebody else has leased the list since
-- cost O(events moved)

local call = redis.call
if tonumber(call('HGET', KEYS[3], 'fence') or 0) ~= tonumber(ARGV[1]) then
	return -1
end
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local to, age = tonumber(ARGV[2]), tonumber(ARGV[3])
if age >= 0 then
	to = math.min(to, (ms - age - 1577836800000) * 4096)
end
local moved, bytes, given = 0, 0, 0
while true do
	local event = call('LINDEX', KEYS[1], 0)
	if not event or tonumber(string.match(event, '^%d+')) > to then
		break
	end
	call('LPOP', KEYS[1])
	local letter = ARGV[4] .. ':' .. string.format('%d', ms) .. string.match(event, '^%d+(:.*)$')
	call('RPUSH', KEYS[2], letter)
	moved, bytes, given = moved + 1, bytes + #event, given + #letter
end

local attempts, again, leased = 0, tonumber(ARGV[5]), tonumber(ARGV[6])
if again >= 0 then
	attempts, again = tonumber(call('HGET', KEYS[3], 'attempts') or 0) + 1, ms + again
end
if leased > 0 then
	leased = ms + leased
end
call('HSET', KEYS[3], 'until', string.format('%d', leased), 'attempts', attempts, 'retry_at', string.format('%d', math.max(again, 0)))
if moved > 0 then
	call('HINCRBY', KEYS[3], 'out_bytes', -bytes)
	local letters = call('LLEN', KEYS[2])
	if letters == moved then
		call('HDEL', KEYS[3], 'dead_bytes') -- those that were counted have expired
	end
	local size = call('HINCRBY', KEYS[3], 'dead_bytes', given)
	while letters > 1 and (letters > tonumber(ARGV[7]) or size > tonumber(ARGV[8])) do
		letters = letters - 1
		size = call('HINCRBY', KEYS[3], 'dead_bytes', -#call('LPOP', KEYS[2]))
		call('HINCRBY', KEYS[3], 'dropped', 1)
	end
	call('PEXPIRE', KEYS[2], ARGV[9])
end
call('PEXPIRE', KEYS[3], ARGV[9])
return moved
