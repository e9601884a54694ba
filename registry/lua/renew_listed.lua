#!lua flags=allow-oom
-- Renews the lease of a server in the list of live servers; adds the server if it is described.
-- Ends the leases that have expired, and returns what has changed. It also runs in a full Redis:
-- otherwise all servers would lose their leases.
-- Besides servers, s_ends_ has " beat" with the time of the last call, and " change" with the
-- number of the last change. Both are in the past, so the command that finds expired leases also
-- finds them.
-- KEYS[1] s_ends_{servers}
-- KEYS[2] s_changes_{servers}
-- KEYS[3] s_about_{servers}
-- ARGV[1] server
-- ARGV[2] lease, us
-- ARGV[3] number from an earlier call: changes after it are returned; 0 for all servers
-- ARGV[4] description of the server; empty if the list has it
-- ARGV[5] how long the list of changes keeps a change, us
-- returns {0} if the list does not have the server and ARGV[4] is empty; else {1 for changes or 2
--         for all servers, the number for the next call, Unix ms, server, description, …}. The
--         description of a server that has ended is empty
-- cost O(log N + expired and changed servers); O(N) if all are returned, and for the first call
--         after a pause
local call, me, lease, since = redis.call, ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])
local function text(n) return string.format('%.0f', n) end
local time = call('TIME')
local now = time[1] * 1000000 + time[2]

local changed, last_beat, last_change = {}, nil, nil
local due = call('ZRANGE', KEYS[1], '-inf', text(now), 'BYSCORE', 'WITHSCORES')
for i = 1, #due, 2 do
  if due[i] == ' beat' then last_beat = tonumber(due[i+1])
  elseif due[i] == ' change' then last_change = tonumber(due[i+1])
  else changed[#changed+1] = due[i] end
end
last_change = last_change or tonumber(call('ZSCORE', KEYS[1], ' change') or 0)

-- If no server could renew its lease for two beats, no lease has run meanwhile. If the clock went
-- back, the leases begin again, 1 us ago: the renewal below must differ.
if not last_beat or last_beat < now - lease * 2 / 5 then
  local ends = call('ZRANGE', KEYS[1], '0', '-1', 'WITHSCORES')
  for i = 1, #ends, 2 do
    if ends[i] ~= ' beat' and ends[i] ~= ' change' then
      call('ZADD', KEYS[1], text(last_beat and ends[i+1] + now - last_beat or now + lease - 1), ends[i])
    end
  end
  changed = {}
end

local expired = {}
for _, server in ipairs(changed) do
  if server ~= me then expired[#expired+1] = server end
end
if ARGV[4] == '' then
  if #expired < #changed or call('ZADD', KEYS[1], 'XX', 'CH', text(now + lease), me, text(now), ' beat') < 2 then return {0} end
  changed = {}
else
  call('ZADD', KEYS[1], text(now + lease), me, text(now), ' beat')
  local known = call('HGET', KEYS[3], me) == ARGV[4]
  if not known then call('HSET', KEYS[3], me, ARGV[4]) end
  changed = known and {} or {me}
end
for _, server in ipairs(expired) do
  call('ZREM', KEYS[1], server)
  call('HDEL', KEYS[3], server)
  changed[#changed+1] = server
end
local oldest = now - tonumber(ARGV[5])
if #changed > 0 then
  last_change = math.max(now, last_change + 1)
  call('ZADD', KEYS[1], text(last_change), ' change')
  for _, server in ipairs(changed) do call('ZADD', KEYS[2], text(last_change), server) end
  call('ZREMRANGEBYSCORE', KEYS[2], '-inf', '(' .. text(oldest))
end

local reply = {1, last_change, math.floor(now / 1000)}
if since == last_change then return reply end
local servers = {}
if since > 0 and since < last_change and since >= oldest then
  servers = call('ZRANGE', KEYS[2], '(' .. text(since), '+inf', 'BYSCORE')
end
-- Without changes the number is from before a failover, or too old. Lua unpacks some thousand.
if #servers == 0 or #servers > 1000 then
  reply[1] = 2
  for _, word in ipairs(call('HGETALL', KEYS[3])) do reply[#reply+1] = word end
  return reply
end
local descriptions = call('HMGET', KEYS[3], unpack(servers))
for i, server in ipairs(servers) do
  reply[#reply+1] = server
  reply[#reply+1] = descriptions[i] or ''
end
return reply
