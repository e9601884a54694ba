#!lua flags=allow-oom
-- Moves events from the head of the outbox to the dead letters, and ends or renews the lease.
-- KEYS[1] ev_out_{evN}
-- KEYS[2] ev_dead_{evN}
-- KEYS[3] ev_m_{evN}
-- ARGV[1] fencing token of the lease
-- ARGV[2] highest sequence number of the events to move
-- ARGV[3] least age of the events to move, ms; negative: any age
-- ARGV[4] reason, a word
-- ARGV[5] delay of the next attempt after a failed one, ms; negative if the attempt has not failed
-- ARGV[6] remaining duration of the lease, ms; 0 ends it
-- ARGV[7] limit of the dead letters, events
-- ARGV[8] limit of the dead letters, bytes
-- ARGV[9] retention, ms
-- ARGV[10] the last answer of the endpoint: <status> <error>, empty for none
-- returns the number of events moved; -1 if another process has leased the outbox since
-- cost O(events moved)

local call = redis.call
if tonumber(call('HGET', KEYS[3], 'fence') or 0) ~= tonumber(ARGV[1]) then
	return -1
end
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local upTo, minAge = tonumber(ARGV[2]), tonumber(ARGV[3])
if minAge >= 0 then
	-- A sequence number is at least 4096 × the time in ms since 2020-01-01 UTC (1577836800000).
	upTo = math.min(upTo, (ms - minAge - 1577836800000) * 4096)
end
local moved, eventBytes, letterBytes = 0, 0, 0
while true do
	local event = call('LINDEX', KEYS[1], 0)
	if not event or tonumber(string.match(event, '^%d+')) > upTo then
		break
	end
	call('LPOP', KEYS[1])
	local letter = ARGV[4] .. ':' .. string.format('%d', ms) .. string.match(event, '^%d+(:.*)$')
	call('RPUSH', KEYS[2], letter)
	moved, eventBytes, letterBytes = moved + 1, eventBytes + #event, letterBytes + #letter
end

local retryIn, lease = tonumber(ARGV[5]), tonumber(ARGV[6])
local attempts, retryAt, leaseUntil = 0, 0, 0
if retryIn >= 0 then
	attempts, retryAt = tonumber(call('HGET', KEYS[3], 'attempts') or 0) + 1, ms + retryIn
end
if lease > 0 then
	leaseUntil = ms + lease
end
call('HSET', KEYS[3], 'until', string.format('%d', leaseUntil), 'attempts', attempts, 'retry_at', string.format('%d', retryAt))
if ARGV[10] ~= '' then
	call('HSET', KEYS[3], 'answer', string.format('%d', ms) .. ' ' .. ARGV[10])
end
if moved > 0 then
	call('HINCRBY', KEYS[3], 'out_bytes', -eventBytes)
	local letters = call('LLEN', KEYS[2])
	if letters == moved then
		call('HDEL', KEYS[3], 'dead_bytes') -- the dead letters that it counted have expired
	end
	local size = call('HINCRBY', KEYS[3], 'dead_bytes', letterBytes)
	while letters > 1 and (letters > tonumber(ARGV[7]) or size > tonumber(ARGV[8])) do
		letters = letters - 1
		size = call('HINCRBY', KEYS[3], 'dead_bytes', -#call('LPOP', KEYS[2]))
		call('HINCRBY', KEYS[3], 'dropped', 1)
	end
	call('PEXPIRE', KEYS[2], ARGV[9])
end
call('PEXPIRE', KEYS[3], ARGV[9])
return moved
