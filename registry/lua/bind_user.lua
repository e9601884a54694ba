#!lua
-- Writes bindings of clients to their users, except where an entry has a higher generation. If a
-- user has too many clients, the offline client with the lowest generation is removed. A malformed
-- entry counts as offline with the lowest generation. A client whose token was revoked is not
-- bound.
-- For each binding:
-- KEYS[k+1] u_{user}
-- KEYS[k+2] u_r_{user}
-- KEYS[k+3] u_r_{user}:<client>
-- KEYS[k+4] u_s_{user}
-- KEYS[k+5] u_s_{user}:<client>
-- KEYS[k+6] u_w_{user}
-- ARGV[a+1] client
-- ARGV[a+2] server
-- ARGV[a+3] generation, integer below 2^53
-- ARGV[a+4] when the token was issued, Unix ms; 0 if it is not known
-- For all:
-- ARGV[1] TTL of the key, ms
-- ARGV[2] most clients of one user
-- ARGV[3] most online clients of one user, 0 for no limit
-- returns for each binding 1 if it was written, or if its entry has a higher generation; 2 if it
--         was written and there are subscriptions of the backend; 0 if it was refused, because too
--         many clients are online, or the user has too many and none is offline; -1 if the token
--         was revoked; or an error. If it was written and servers watch the user, an array of that
--         and these servers
-- cost O(1 + servers that watch the user) for each; O(clients of the user) for a client that comes
--         online if the user has ARGV[3] clients or more, and for a new client if the user has
--         ARGV[2] clients
local call, ttl, max_clients, max_online = redis.call, ARGV[1], tonumber(ARGV[2]), tonumber(ARGV[3])

local function bind(k, a)
  if revoked(KEYS[k+2], KEYS[k+3], ARGV[a+4]) then return -1 end
  local entry = call('HGET', KEYS[k+1], ARGV[a+1])
  if entry then
    local generation = entry:match(':(%d+)$')
    if generation and tonumber(generation) > tonumber(ARGV[a+3]) then return 1 end
  end
  if max_online > 0 and not (entry and entry:match('^.+:%d+$')) and call('HLEN', KEYS[k+1]) >= max_online then
    local online = 0
    for _, value in ipairs(call('HVALS', KEYS[k+1])) do
      if value:match('^.+:%d+$') then online = online + 1 end
    end
    if online >= max_online then return 0 end
  end
  if not entry and call('HLEN', KEYS[k+1]) >= max_clients then
    local evicted, lowest_generation
    local entries = call('HGETALL', KEYS[k+1])
    for i = 1, #entries, 2 do
      local server, generation = entries[i + 1]:match('^(.*):(%d+)$')
      generation = tonumber(generation or -1)
      if (server or '') == '' and (not lowest_generation or generation < lowest_generation) then
        evicted, lowest_generation = entries[i], generation
      end
    end
    if not evicted then return 0 end
    call('HDEL', KEYS[k+1], evicted)
  end
  call('HSET', KEYS[k+1], ARGV[a+1], ARGV[a+2] .. ':' .. ARGV[a+3])
  call('PEXPIRE', KEYS[k+1], ttl)
  -- Few users have any of these, so one command looks for all.
  if call('EXISTS', KEYS[k+4], KEYS[k+5], KEYS[k+6]) == 0 then return 1 end
  local reply = call('ZRANGE', KEYS[k+6], '0', '-1')
  local subscribed = call('EXISTS', KEYS[k+4], KEYS[k+5]) > 0 and 2 or 1
  if #reply == 0 then return subscribed end
  table.insert(reply, 1, subscribed)
  return reply
end

-- An error in one binding does not affect the others.
local replies = {}
for i = 1, #KEYS / 6 do
  local ok, reply = pcall(bind, 6 * i - 6, 4 * i - 1)
  replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
