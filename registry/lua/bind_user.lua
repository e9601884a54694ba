#!lua
-- Puts a client into the clients of a user, unless a higher generation of it is there. A full user loses the
-- offline client with the lowest generation; an entry that nobody can read counts as offline and lowest.
-- KEYS[1] u_{user}
-- ARGV[1] client
-- ARGV[2] server
-- ARGV[3] generation, integer below 2^53
-- ARGV[4] TTL of the key, ms
-- ARGV[5] most clients of one user
-- ARGV[6] most of them online, 0 for as many as there may be
-- returns 1 when it is there or outdated, 0 when the user is full and no client is offline, or too many are online
-- cost O(1), for a client that comes online and of a user with ARGV[6] or more clients O(clients)
local held = redis.call('HGET', KEYS[1], ARGV[1])
if held then
  local generation = held:match(':(%d+)$')
  if generation and tonumber(generation) > tonumber(ARGV[3]) then return 1 end
end
local most = tonumber(ARGV[6])
if most > 0 and not (held and held:match('^.+:%d+$')) and redis.call('HLEN', KEYS[1]) >= most then
  local online = 0
  for _, value in ipairs(redis.call('HVALS', KEYS[1])) do
    if value:match('^.+:%d+$') then online = online + 1 end
  end
  if online >= most then return 0 end
end
if not held and redis.call('HLEN', KEYS[1]) >= tonumber(ARGV[5]) then
  local oldest, lowest
  local entries = redis.call('HGETALL', KEYS[1])
  for i = 1, #entries, 2 do
    local server, generation = entries[i + 1]:match('^(.*):(%d+)$')
    generation = tonumber(generation or -1)
    if (server or '') == '' and (not lowest or generation < lowest) then
      oldest, lowest = entries[i], generation
    end
  end
  if not oldest then return 0 end
  redis.call('HDEL', KEYS[1], oldest)
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2] .. ':' .. ARGV[3])
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 1
