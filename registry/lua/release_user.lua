#!lua flags=allow-oom
-- Marks a client offline, if its entry has this generation.
-- KEYS[1] u_{user}
-- KEYS[2] u_w_{user}
-- ARGV[1] client
-- ARGV[2] generation, integer below 2^53
-- returns the servers that watch the user
-- cost O(servers that watch the user)
local entry = redis.call('HGET', KEYS[1], ARGV[1])
local generation = entry and entry:match(':(%d+)$')
if generation and tonumber(generation) == tonumber(ARGV[2]) then
  redis.call('HSET', KEYS[1], ARGV[1], ':' .. ARGV[2])
end
return redis.call('ZRANGE', KEYS[2], '0', '-1')
