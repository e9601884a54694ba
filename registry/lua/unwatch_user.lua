#!lua flags=allow-oom
-- Removes registrations of servers that watch users, except those that were renewed since.
-- For each registration:
-- KEYS[k+1] u_w_{user}
-- ARGV[a+1] server
-- ARGV[a+2] number of the registration, integer below 2^53
-- returns for each registration 1 if it was removed, else 0; or an error
-- cost O(log(servers that watch the user))
local call = redis.call

local function unwatch(k, a)
  local key, server = KEYS[k+1], ARGV[a+1]
  local score = call('ZSCORE', key, server)
  if not score or tonumber(score) ~= tonumber(ARGV[a+2]) then return 0 end
  return call('ZREM', key, server)
end

-- An error in one registration does not affect the others.
local replies = {}
for i = 1, #KEYS do
  local ok, reply = pcall(unwatch, i - 1, 2 * i - 2)
  replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
