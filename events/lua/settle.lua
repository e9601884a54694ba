#!lua
-- Ends a claim: removes the entry from the due list, stores the reported state, and appends the
-- event to the outbox.
-- KEYS[1] ev_due_{evN}
-- KEYS[2] ev_told_{evN}
-- KEYS[3] ev_watch_{evN}
-- KEYS[4] ev_out_{evN}
-- KEYS[5] ev_dead_{evN}
-- KEYS[6] ev_m_{evN}
-- ARGV[1] entry
-- ARGV[2] fencing token of the claim
-- ARGV[3] 1 if the user or channel is present, else 0
-- ARGV[4] JSON of the event after its id and time; empty for none
-- ARGV[5] id of the event; empty for <seq>-<shard>
-- ARGV[6] shard
-- ARGV[7] limit of the outbox, events
-- ARGV[8] limit of the outbox, bytes
-- ARGV[9] limit of the dead letters, events
-- ARGV[10] limit of the dead letters, bytes
-- ARGV[11] retention, ms
-- returns -1 if the claim is no longer valid; 0 if there is no event; else 1 + the number of older
-- events that were moved to the dead letters
-- cost O(log entries + events moved or dropped)

local call = redis.call
local score = call('ZSCORE', KEYS[1], ARGV[1])
if not score or tonumber(score) ~= tonumber(ARGV[2]) then
	return -1
end
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local time = string.format('%d', ms)
call('ZREM', KEYS[1], ARGV[1])
if string.sub(ARGV[1], 1, 2) == 'd:' then
	local bytes = call('HSTRLEN', KEYS[3], ARGV[1])
	if bytes > 0 then
		call('HDEL', KEYS[3], ARGV[1])
		call('HINCRBY', KEYS[6], 'watch_bytes', -bytes)
		call('PEXPIRE', KEYS[6], ARGV[11])
	end
else
	local reported = call('HEXISTS', KEYS[2], ARGV[1])
	if reported == tonumber(ARGV[3]) then
		return 0
	end
	if reported == 1 then
		call('HDEL', KEYS[2], ARGV[1])
	else
		call('HSET', KEYS[2], ARGV[1], time)
		call('PEXPIRE', KEYS[2], ARGV[11])
	end
end
if ARGV[4] == '' then
	return 0
end

-- A sequence number is at least 4096 × the time in ms since 2020-01-01 UTC (1577836800000).
local seq = string.format('%d', math.max((ms - 1577836800000) * 4096, tonumber(call('HGET', KEYS[6], 'last') or 0) + 1))
local id = ARGV[5] ~= '' and ARGV[5] or seq .. '-' .. ARGV[6]
local event = seq .. ':{"id":"' .. id .. '","at":' .. time .. ',' .. ARGV[4]
local length, bytes = call('RPUSH', KEYS[4], event), #event
if length > 1 then -- else the events that out_bytes counts have expired
	bytes = bytes + tonumber(call('HGET', KEYS[6], 'out_bytes') or 0)
end

-- If the outbox is too large, its oldest events move to the dead letters. If those are too many,
-- the oldest are dropped.
local moved, letterBytes = 0, 0
while length > 1 and (length > tonumber(ARGV[7]) or bytes > tonumber(ARGV[8])) do
	local oldest = call('LPOP', KEYS[4])
	length, bytes = length - 1, bytes - #oldest
	local letter = 'full:' .. time .. string.match(oldest, '^%d+(:.*)$')
	call('RPUSH', KEYS[5], letter)
	moved, letterBytes = moved + 1, letterBytes + #letter
end
call('HSET', KEYS[6], 'last', seq, 'out_bytes', bytes)
if moved > 0 then
	local letters = call('LLEN', KEYS[5])
	if letters == moved then
		call('HDEL', KEYS[6], 'dead_bytes') -- the dead letters that it counted have expired
	end
	local size = call('HINCRBY', KEYS[6], 'dead_bytes', letterBytes)
	while letters > 1 and (letters > tonumber(ARGV[9]) or size > tonumber(ARGV[10])) do
		letters = letters - 1
		size = call('HINCRBY', KEYS[6], 'dead_bytes', -#call('LPOP', KEYS[5]))
		call('HINCRBY', KEYS[6], 'dropped', 1)
	end
	call('PEXPIRE', KEYS[5], ARGV[11])
end
call('PEXPIRE', KEYS[4], ARGV[11])
call('PEXPIRE', KEYS[6], ARGV[11])
return 1 + moved
