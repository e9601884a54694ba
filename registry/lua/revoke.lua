#!lua
-- Revokes tokens of users that were issued before a time. A later time that is stored stays. A
-- malformed one is replaced.
-- For each revocation:
-- KEYS[k+1] u_r_{user} or u_r_{user}:<client>
-- KEYS[k+2] u_{user}
-- ARGV[a+1] the time, Unix ms; 0 for the present
-- For all:
-- ARGV[1] TTL of u_r_, ms
-- returns for each revocation the time in force, Unix ms; when it ends, Unix ms; and then the
--         fields and values of u_{user}
-- cost O(clients of the user) for each
local call, ttl = redis.call, tonumber(ARGV[1])
local time = call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)

local function revoke(k, a)
  local before = tonumber(ARGV[a+1])
  if before == 0 then before = now end
  before = math.max(before, tonumber(call('GET', KEYS[k+1]) or 0) or 0)
  call('SET', KEYS[k+1], string.format('%.0f', before), 'PX', ttl)
  local reply = { before, now + ttl }
  for _, word in ipairs(call('HGETALL', KEYS[k+2])) do reply[#reply+1] = word end
  return reply
end

local replies = {}
for i = 1, #KEYS / 2 do replies[i] = revoke(2 * i - 2, i) end
return replies
