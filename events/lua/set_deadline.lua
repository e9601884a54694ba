#!lua
-- Stores the record of a message and schedules a check of its acknowledgement. It does nothing if
-- there is a record already.
-- KEYS[1] ev_due_{evN}
-- KEYS[2] ev_watch_{evN}
-- KEYS[3] ev_m_{evN}
-- ARGV[1] entry, d:<deadline>
-- ARGV[2] record, JSON
-- ARGV[3] time until the check, ms
-- ARGV[4] limit of the due list, entries
-- ARGV[5] limit of all records, bytes
-- ARGV[6] retention, ms
-- returns 1; 0 if there is no room
-- cost O(log entries)

local call = redis.call
if call('HEXISTS', KEYS[2], ARGV[1]) == 1 then
	return 1
end
local bytes = #ARGV[2]
if call('EXISTS', KEYS[2]) == 1 then -- else the records that watch_bytes counts have expired
	bytes = bytes + tonumber(call('HGET', KEYS[3], 'watch_bytes') or 0)
end
if call('ZCARD', KEYS[1]) >= tonumber(ARGV[4]) or bytes > tonumber(ARGV[5]) then
	return 0
end
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
call('HSET', KEYS[2], ARGV[1], ARGV[2])
call('ZADD', KEYS[1], string.format('%d', ms + tonumber(ARGV[3])), ARGV[1])
call('HSET', KEYS[3], 'watch_bytes', bytes)
for _, key in ipairs(KEYS) do
	call('PEXPIRE', key, tonumber(ARGV[6]) + tonumber(ARGV[3]))
end
return 1
