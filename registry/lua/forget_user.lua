#!lua flags=allow-oom
-- Removes a client of a user, unless its entry has a higher generation.
-- KEYS[1] u_{user}
-- ARGV[1] client
-- ARGV[2] generation, integer below 2^53
-- returns the number of clients removed: 0 or 1
-- cost O(1)
local entry = redis.call('HGET', KEYS[1], ARGV[1])
local generation = entry and entry:match(':(%d+)$')
if generation and tonumber(generation) > tonumber(ARGV[2]) then return 0 end
return redis.call('HDEL', KEYS[1], ARGV[1])
