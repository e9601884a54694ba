#!lua
-- Uses budgets that refill with time. A budget is the time at which it is full again.
-- For each sender:
-- KEYS[i] sb_{user} or sb_a_{address}
-- ARGV[a+1] cost of the stored bytes: the time in which they are refilled, us
-- ARGV[a+2] most time until the budget of bytes is full after it, us
-- ARGV[a+3] cost of the created channels, us
-- ARGV[a+4] most time until the budget of channels is full after it, us
-- returns for each sender the times until its two budgets are full, us
-- cost O(1) for each
local call = redis.call
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local function use(full, cost, most)
  full = math.max(now, tonumber(full or 0) or 0)
  return cost > 0 and math.max(full, math.min(full + cost, now + most)) or full
end

local function spend(key, a)
  local stored = call('HMGET', key, 'bytes', 'channels')
  local bytes, channels = tonumber(ARGV[a+1]), tonumber(ARGV[a+3])
  local bytes_full = use(stored[1], bytes, tonumber(ARGV[a+2]))
  local channels_full = use(stored[2], channels, tonumber(ARGV[a+4]))
  if bytes > 0 or channels > 0 then
    call('HSET', key, 'bytes', string.format('%.0f', bytes_full), 'channels', string.format('%.0f', channels_full))
    call('PEXPIRE', key, math.ceil((math.max(bytes_full, channels_full) - now) / 1000))
  end
  return { bytes_full - now, channels_full - now }
end

local replies = {}
for i = 1, #KEYS do replies[i] = spend(KEYS[i], 4 * i - 4) end
return replies
