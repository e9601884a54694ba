#!lua flags=allow-oom
-- Removes delivered events from the head of the outbox, and ends or renews the lease.
-- KEYS[1] ev_out_{evN}
-- KEYS[2] ev_m_{evN}
-- ARGV[1] fencing token of the lease
-- ARGV[2] highest sequence number of the events to remove
-- ARGV[3] remaining duration of the lease, ms; 0 ends it
-- ARGV[4] the last answer of the endpoint: <status> <error>, empty for none
-- returns the number of events removed; -1 if another process has leased the outbox since
-- cost O(events removed)

local call = redis.call
if tonumber(call('HGET', KEYS[2], 'fence') or 0) ~= tonumber(ARGV[1]) then
	return -1
end
local upTo, removed, bytes, done = tonumber(ARGV[2]), 0, 0, false
while not done do
	local chunk, count = call('LRANGE', KEYS[1], '0', '15'), 0
	for _, event in ipairs(chunk) do
		if tonumber(string.match(event, '^%d+')) > upTo then
			break
		end
		count, bytes = count + 1, bytes + #event
	end
	if count > 0 then
		call('LTRIM', KEYS[1], count, '-1')
	end
	removed, done = removed + count, count < 16
end
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local lease, leaseUntil = tonumber(ARGV[3]), 0
if lease > 0 then
	leaseUntil = ms + lease
end
if ARGV[4] ~= '' then
	call('HSET', KEYS[2], 'answer', string.format('%d', ms) .. ' ' .. ARGV[4])
end
if removed > 0 then
	call('HINCRBY', KEYS[2], 'out_bytes', -bytes)
end
call('HSET', KEYS[2], 'until', string.format('%d', leaseUntil), 'attempts', '0', 'retry_at', '0')
return removed
