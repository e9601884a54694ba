#!lua flags=allow-oom
-- Writes a change of the members that a server has in a channel, in a full Redis too: there are no more of them than
-- connections.
-- KEYS[1] ch_p_{channel}:<server>
-- KEYS[2] ch_pw_{channel}
-- ARGV[1] how many join; behind it client, generation and description of each, then client and generation of those
--         that leave
-- returns {version before, version now, {server that watches...}}; a version is a decimal string, '0' of nobody
-- cost O(members changed + watching servers)
local call = redis.call
local version = call('HGET', KEYS[1], ' version') or '0'
local watchers = call('SMEMBERS', KEYS[2])
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local since, last = string.format('%d', ms), 1 + 3 * ARGV[1]
-- held gives since when a client is there, or nothing when a younger connection of it is.
local function held(client, generation)
  local value = call('HGET', KEYS[1], client) or ''
  local from, youngest = value:match('^(%d+):(%d+):')
  if tonumber(youngest or 0) > tonumber(generation) then return end
  return from or since
end
for i = 2, last, 3 do
  local from = held(ARGV[i], ARGV[i + 1])
  if from then
    call('HSET', KEYS[1], ARGV[i], from .. ':' .. ARGV[i + 1] .. ':' .. ARGV[i + 2])
  end
end
for i = last + 1, #ARGV, 2 do
  if held(ARGV[i], ARGV[i + 1]) then
    call('HDEL', KEYS[1], ARGV[i])
  end
end
-- Nobody but the version is left, or nobody was ever here.
if call('HLEN', KEYS[1]) - call('HEXISTS', KEYS[1], ' version') == 0 then
  call('DEL', KEYS[1])
  return {version, '0', watchers}
end
local following = string.format('%d', math.max((ms - 1577836800000) * 4096, tonumber(version) + 1))
call('HSET', KEYS[1], ' version', following)
return {version, following, watchers}
