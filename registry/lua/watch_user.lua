#!lua
-- Registers servers as watching users. Registrations that have ended are removed.
-- For each registration:
-- KEYS[k+1] u_w_{user}
-- ARGV[a+1] server
-- For all:
-- ARGV[1] TTL of a registration, ms
-- returns for each registration its number, about the time in Unix us; negative if the server was
--         not registered before; or an error
-- cost O(log(servers that watch the user) + registrations that have ended)
local call, ttl = redis.call, tonumber(ARGV[1])
local function text(n) return string.format('%.0f', n) end
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local function watch(k, a)
  local key, server = KEYS[k+1], ARGV[a+1]
  call('ZREMRANGEBYSCORE', key, '-inf', '(' .. text(now - ttl * 1000))
  local before = tonumber(call('ZSCORE', key, server) or '')
  local number = math.max(now, (before or 0) + 1)
  call('ZADD', key, text(number), server)
  call('PEXPIRE', key, ttl)
  return before and number or -number
end

-- An error in one registration does not affect the others.
local replies = {}
for i = 1, #KEYS do
  local ok, reply = pcall(watch, i - 1, i)
  replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
