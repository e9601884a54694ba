#!lua flags=allow-oom
-- Marks a client offline, if its entry has this generation.
-- KEYS[1] u_{user}
-- ARGV[1] client
-- ARGV[2] generation, integer below 2^53
-- returns 1 if it has this generation, else 0
-- cost O(1)
local entry = redis.call('HGET', KEYS[1], ARGV[1])
local generation = entry and entry:match(':(%d+)$')
if not generation or tonumber(generation) ~= tonumber(ARGV[2]) then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ':' .. ARGV[2])
return 1
