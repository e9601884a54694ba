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

local score = call('ZSCORE', KEYS[1], ARGV[1])
if not score or tonumber(score) ~= tonumber(ARGV[2]) then
	return -1
end
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
local limits = {tonumber(ARGV[7]), tonumber(ARGV[8]), tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11]}
return 1 + append_event(KEYS[4], KEYS[5], KEYS[6], ARGV[6], ARGV[5], ARGV[4], limits)
