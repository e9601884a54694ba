#!lua
-- Puts clients into the clients of users, unless a higher generation of them is there. A full user loses the
-- offline client with the lowest generation; an entry that nobody can read counts as offline and lowest.
-- Of each user and client:
-- KEYS[k+1] u_{user}
-- ARGV[a+1] client
-- ARGV[a+2] server
-- ARGV[a+3] generation, integer below 2^53
-- For all:
-- ARGV[1] TTL of the key, ms
-- ARGV[2] most clients of one user
-- ARGV[3] most of them online, 0 for as many as there may be
-- returns for each 1 when it is there or outdated, 0 when the user is full and no client is offline, or too many are online; or
--         its error
-- cost O(1) for each, for a client that comes online and of a user with ARGV[3] or more clients O(clients)
local call, ttl, full, most = redis.call, ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local function bind(k, a)
  local held = call('HGET', KEYS[k+1], ARGV[a+1])
  if held then
    local generation = held:match(':(%d+)$')
    if generation and tonumber(generation) > tonumber(ARGV[a+3]) then return 1 end
  end
  if most > 0 and not (held and held:match('^.+:%d+$')) and call('HLEN', KEYS[k+1]) >= most then
    local online = 0
    for _, value in ipairs(call('HVALS', KEYS[k+1])) do
      if value:match('^.+:%d+$') then online = online + 1 end
    end
    if online >= most then return 0 end
  end
  if not held and call('HLEN', KEYS[k+1]) >= full then
    local oldest, lowest
    local entries = call('HGETALL', KEYS[k+1])
    for i = 1, #entries, 2 do
      local server, generation = entries[i + 1]:match('^(.*):(%d+)$')
      generation = tonumber(generation or -1)
      if (server or '') == '' and (not lowest or generation < lowest) then
        oldest, lowest = entries[i], generation
      end
    end
    if not oldest then return 0 end
    call('HDEL', KEYS[k+1], oldest)
  end
  call('HSET', KEYS[k+1], ARGV[a+1], ARGV[a+2] .. ':' .. ARGV[a+3])
  call('PEXPIRE', KEYS[k+1], ttl)
  return 1
end

-- What is wrong with one user is that one's own.
local replies = {}
for i = 1, #KEYS do
  local done, reply = pcall(bind, i - 1, 3 * i)
  replies[i] = (done or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
