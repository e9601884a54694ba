#!lua
-- Ends a claim: the entry goes off the due list, and what is new about it is noted and told.
-- KEYS[1] ev_due_{evN}
-- KEYS[2] ev_told_{evN}
-- KEYS[3] ev_watch_{evN}
-- KEYS[4] ev_out_{evN}
-- KEYS[5] ev_dead_{evN}
-- KEYS[6] ev_m_{evN}
-- ARGV[1] entry
-- ARGV[2] token of the claim
-- ARGV[3] 1 when the user or channel is present, 0 when not
-- ARGV[4] the event behind its id and time, empty for none
-- ARGV[5] id of the event, empty for <place>-<shard>
-- ARGV[6] shard
-- ARGV[7] cap of the list, events
-- ARGV[8] cap of the list, bytes
-- ARGV[9] cap of the dead letters, events
-- ARGV[10] cap of the dead letters, bytes
-- ARGV[11] retention, ms
-- returns -1 when the claim is another's by now, 0 without an event, else 1 and how many events were given up for it
-- cost O(log entries + events dropped)

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
	local told = call('HEXISTS', KEYS[2], ARGV[1])
	if told == tonumber(ARGV[3]) then
		return 0
	end
	if told == 1 then
		call('HDEL', KEYS[2], ARGV[1])
	else
		call('HSET', KEYS[2], ARGV[1], time)
		call('PEXPIRE', KEYS[2], ARGV[11])
	end
end
if ARGV[4] == '' then
	return 0
end

local place = string.format('%d', math.max((ms - 1577836800000) * 4096, tonumber(call('HGET', KEYS[6], 'last') or 0) + 1))
local id = ARGV[5] ~= '' and ARGV[5] or place .. '-' .. ARGV[6]
local event = place .. ':{"id":"' .. id .. '","at":' .. time .. ',' .. ARGV[4]
local length, bytes = call('RPUSH', KEYS[4], event), #event
if length > 1 then -- else what was counted is of a list that has expired
	bytes = bytes + tonumber(call('HGET', KEYS[6], 'out_bytes') or 0)
end

-- What there is no room for goes from the head of the list to the dead letters, and from their head away.
local moved, given = 0, 0
while length > 1 and (length > tonumber(ARGV[7]) or bytes > tonumber(ARGV[8])) do
	local oldest = call('LPOP', KEYS[4])
	length, bytes = length - 1, bytes - #oldest
	local letter = 'full:' .. time .. string.match(oldest, '^%d+(:.*)$')
	call('RPUSH', KEYS[5], letter)
	moved, given = moved + 1, given + #letter
end
call('HSET', KEYS[6], 'last', place, 'out_bytes', bytes)
if moved > 0 then
	local letters = call('LLEN', KEYS[5])
	if letters == moved then
		call('HDEL', KEYS[6], 'dead_bytes') -- those that were counted have expired
	end
	local size = call('HINCRBY', KEYS[6], 'dead_bytes', given)
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
