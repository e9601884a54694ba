#!lua
-- Ends a claim of a tracked channel: appends the events to the outbox, stores the reported
-- position, and schedules the next check. The position is the fencing token of the events. A check
-- that was scheduled during the claim stays.
-- KEYS[1] ev_due_{evN}
-- KEYS[2] ev_fields_{evN}
-- KEYS[3] ev_out_{evN}
-- KEYS[4] ev_dead_{evN}
-- KEYS[5] ev_m_{evN}
-- ARGV[1] entry, f:<channel>
-- ARGV[2] token of the claim
-- ARGV[3] the reported position at the time of the claim; empty if the channel was not tracked
-- ARGV[4] the new reported position
-- ARGV[5] 1 if the channel has no fields, else 0
-- ARGV[6] time of the next check, Unix ms; 0 for none
-- ARGV[7] how long a channel without fields stays tracked, ms; negative ends the tracking at once
-- ARGV[8] least time until the next check, ms
-- ARGV[9] shard
-- ARGV[10] limit of the outbox, events
-- ARGV[11] limit of the outbox, bytes
-- ARGV[12] limit of the dead letters, events
-- ARGV[13] limit of the dead letters, bytes
-- ARGV[14] retention, ms
-- ARGV[15] events: a JSON array of <id> and the JSON after the event's id and time, alternately
-- returns -1 if the channel is not tracked or its reported position is another one; else the number
-- of older events that were moved to the dead letters
-- cost O(log entries + events appended, moved or dropped)

local due, fields, entry = KEYS[1], KEYS[2], ARGV[1]
local score = tonumber(call('ZSCORE', due, entry) or '')
local claimed = score and score == tonumber(ARGV[2])
local reported, renewed = string.match(call('HGET', fields, entry) or '', '^(%d+) (%d+) %d$')
if reported ~= ARGV[3] then
	if claimed and not reported then
		call('ZREM', due, entry)
	end
	return -1
end

local limits = {tonumber(ARGV[10]), tonumber(ARGV[11]), tonumber(ARGV[12]), tonumber(ARGV[13]), ARGV[14]}
local moved, events = 0, cjson.decode(ARGV[15])
for i = 1, #events, 2 do
	moved = moved + append_event(KEYS[3], KEYS[4], KEYS[5], ARGV[9], events[i], events[i + 1], limits)
	renewed = time
end

local next_check, idle, untrack = tonumber(ARGV[6]), tonumber(ARGV[7]), false
if idle < 0 then
	untrack = true
elseif next_check == 0 and ARGV[5] == '1' then
	next_check = tonumber(renewed) + idle
	untrack = next_check <= ms
end
if untrack and claimed then
	call('HDEL', fields, entry)
	call('ZREM', due, entry)
	return moved
end
call('HSET', fields, entry, ARGV[4] .. ' ' .. renewed .. ' ' .. ARGV[5])
if claimed and next_check == 0 then
	call('ZREM', due, entry)
elseif claimed then
	call('ZADD', due, string.format('%d', math.max(next_check, ms + tonumber(ARGV[8]))), entry)
elseif next_check > 0 then
	call('ZADD', due, string.format('%d', math.min(next_check, math.floor(score or next_check))), entry)
end
call('PEXPIRE', due, ARGV[14])
call('PEXPIRE', fields, ARGV[14])
return moved
