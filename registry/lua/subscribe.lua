#!lua
-- Changes entries of a list of subscriptions that the backend makes. Their time is later than that
-- of all others.
-- KEYS[1] u_s_{user}, u_s_{user}:<client> or c_s_{client}
-- KEYS[2] u_{user}; missing for a client without a user
-- ARGV[1] kind of the entries: +, - or =
-- ARGV[2] id of a message after which a first subscription begins; empty for the present
-- ARGV[3] TTL of the list, ms
-- ARGV[4] most channels that are subscribed, and most other entries
-- ARGV[i] from 5 on: the channels
-- returns when the list ends, Unix ms, and then the fields and values of u_{user}; nothing if too
--         many channels would be subscribed
-- cost O(entries of the list and clients of the user)
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local stamp, subscribed = now, 0
local given = {}
for i = 5, #ARGV do given[ARGV[i]] = true end
local entries = call('HGETALL', KEYS[1])
for i = 1, #entries, 2 do
  stamp = math.max(stamp, at(entries[i+1]) + 1)
  if entries[i+1]:sub(1, 1) == '+' and not given[entries[i]] then subscribed = subscribed + 1 end
end
local value = ARGV[1] .. string.format('%.0f', stamp)
if ARGV[2] ~= '' then value = value .. ':' .. ARGV[2] end
if ARGV[1] == '+' then
  for _ in pairs(given) do subscribed = subscribed + 1 end
  if subscribed > tonumber(ARGV[4]) then return {} end
end
for channel in pairs(given) do call('HSET', KEYS[1], channel, value) end
trim(KEYS[1], call('HGETALL', KEYS[1]), tonumber(ARGV[4]))
call('PEXPIRE', KEYS[1], ARGV[3])

local reply = { math.floor(now / 1000) + tonumber(ARGV[3]) }
if KEYS[2] then
  for _, word in ipairs(call('HGETALL', KEYS[2])) do reply[#reply+1] = word end
end
return reply
