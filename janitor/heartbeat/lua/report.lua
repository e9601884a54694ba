#!lua flags=allow-oom
-- Stores the description of a janitor, and removes those of janitors that have not reported lately.
-- KEYS[1] j_list
-- ARGV[1] id of the janitor
-- ARGV[2] its description, JSON
-- ARGV[3] how long a description stays, ms
-- returns the number of descriptions
-- cost O(descriptions)

local call = redis.call
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
call('HSET', KEYS[1], ARGV[1], string.format('%d', ms) .. ' ' .. ARGV[2])
local all = call('HGETALL', KEYS[1])
for i = 1, #all, 2 do
	if tonumber(string.match(all[i + 1], '^%d+') or 0) < ms - ARGV[3] then
		call('HDEL', KEYS[1], all[i])
	end
end
call('PEXPIRE', KEYS[1], ARGV[3])
return call('HLEN', KEYS[1])
