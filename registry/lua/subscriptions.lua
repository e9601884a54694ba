#!lua
-- Reads the lists of subscriptions that the backend makes for clients, and renews their TTL. A list
-- that lacks an entry that the caller has read before, or has an older one, takes it over.
-- For each client:
-- KEYS[k+1] u_s_{user}; KEYS[k+2] for a client without a user
-- KEYS[k+2] u_s_{user}:<client> or c_s_{client}
-- ARGV[a+1] entries of KEYS[k+1] that the caller has: the channel and the value, each on a line
-- ARGV[a+2] those of KEYS[k+2]
-- For all:
-- ARGV[1] TTL of the lists, ms
-- ARGV[2] most channels that are subscribed, and most other entries, of one list
-- returns for each client the fields and values of both lists; the first is empty without a user
-- cost O(entries of the lists)
local call, ttl, most = redis.call, ARGV[1], tonumber(ARGV[2])

local function read(key, held)
  local changed = false
  for channel, value in held:gmatch('([^\n]+)\n([^\n]+)\n') do
    if at(call('HGET', key, channel) or '') < at(value) then
      call('HSET', key, channel, value)
      changed = true
    end
  end
  local entries = call('HGETALL', key)
  if changed then
    trim(key, entries, most)
    entries = call('HGETALL', key)
  end
  if #entries > 0 then call('PEXPIRE', key, ttl) end
  return entries
end

local function both(k, a)
  if KEYS[k+1] == KEYS[k+2] then return { {}, read(KEYS[k+2], ARGV[a+2]) } end
  return { read(KEYS[k+1], ARGV[a+1]), read(KEYS[k+2], ARGV[a+2]) }
end

local replies = {}
for i = 1, #KEYS / 2 do replies[i] = both(2 * i - 2, 2 * i) end
return replies
