#!lua flags=allow-oom
-- Takes events that were delivered from the head of the list, and ends the lease or renews it.
-- KEYS[1] ev_out_{evN}
-- KEYS[2] ev_m_{evN}
-- ARGV[1] fence of the lease
-- ARGV[2] place up to which they were delivered
-- ARGV[3] how long the lease lasts from now, ms; 0 ends it
-- returns how many left the list, -1 when somebody else has leased it since
-- cost O(events)

local call = redis.call
if tonumber(call('HGET', KEYS[2], 'fence') or 0) ~= tonumber(ARGV[1]) then
	return -1
end
local to, sent, bytes, done = tonumber(ARGV[2]), 0, 0, false
while not done do
	local chunk, count = call('LRANGE', KEYS[1], '0', '15'), 0
	for _, event in ipairs(chunk) do
		if tonumber(string.match(event, '^%d+')) > to then
			break
		end
		count, bytes = count + 1, bytes + #event
	end
	if count > 0 then
		call('LTRIM', KEYS[1], count, '-1')
	end
	sent, done = sent + count, count < 16
end
local leased = tonumber(ARGV[3])
if leased > 0 then
	local now = call('TIME')
	leased = now[1] * 1000 + math.floor(now[2] / 1000) + leased
end
if sent > 0 then
	call('HINCRBY', KEYS[2], 'out_bytes', -bytes)
end
call('HSET', KEYS[2], 'until', string.format('%d', leased), 'attempts', '0', 'retry_at', '0')
return sent
