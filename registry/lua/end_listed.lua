#!lua flags=allow-oom
-- Removes a server from the list of live servers, which is a change. Without servers the list has
-- no keys.
-- KEYS[1] s_ends_{servers}
-- KEYS[2] s_changes_{servers}
-- KEYS[3] s_about_{servers}
-- ARGV[1] server
-- returns the number of servers removed: 0 or 1
-- cost O(log N)
local call = redis.call
if call('ZREM', KEYS[1], ARGV[1]) + call('HDEL', KEYS[3], ARGV[1]) == 0 then return 0 end
if call('EXISTS', KEYS[3]) == 0 then
  call('DEL', KEYS[1], KEYS[2])
  return 1
end
local time = call('TIME')
local now, last = time[1] * 1000000 + time[2], call('ZSCORE', KEYS[1], ' change')
local number = string.format('%.0f', math.max(now, tonumber(last or 0) + 1))
call('ZADD', KEYS[1], number, ' change')
call('ZADD', KEYS[2], number, ARGV[1])
return 1
