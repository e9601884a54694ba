#!lua
-- Notes that an entry changed: it is to be looked at now, or later when it is told present.
-- KEYS[1] ev_due_{evN}
-- KEYS[2] ev_told_{evN}
-- ARGV[1] entry, u:<user> or c:<channel>
-- ARGV[2] grace of who is told present, ms
-- ARGV[3] cap of the due list, entries
-- ARGV[4] retention, ms
-- returns 1, or 0 when the due list is full
-- cost O(log entries)

local call = redis.call
if call('ZCARD', KEYS[1]) >= tonumber(ARGV[3]) and not call('ZSCORE', KEYS[1], ARGV[1]) then
	return 0
end
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
if call('HEXISTS', KEYS[2], ARGV[1]) == 1 then
	ms = ms + tonumber(ARGV[2])
end
call('ZADD', KEYS[1], string.format('%d', ms), ARGV[1])
call('PEXPIRE', KEYS[1], ARGV[4])
return 1
