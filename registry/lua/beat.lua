#!lua flags=allow-oom
-- Renews the lease and the description of a server, unless it was declared dead. It also runs in a
-- full Redis: otherwise all servers would lose their leases.
-- KEYS[1] s_{server}
-- KEYS[2] s_dead_{server}
-- ARGV[1] lease, ms
-- ARGV[2] host
-- ARGV[3] version
-- ARGV[4] started_at, ms since 1970
-- ARGV[5] connections
-- ARGV[6] users
-- ARGV[7] channels
-- ARGV[8] watching, users
-- ARGV[9] can, names of features
-- ARGV[10] last_active, ms since 1970; empty for now
-- returns states_changed, 0 for none, or -1 if the server was declared dead
-- cost O(1)
local call, now = redis.call, ARGV[10]
if now == '' then
  local time = call('TIME')
  now = string.format('%.0f', time[1] * 1000 + math.floor(time[2] / 1000))
end
local added = call('HSET', KEYS[1],
  'host', ARGV[2], 'version', ARGV[3], 'started_at', ARGV[4], 'last_active', now,
  'connections', ARGV[5], 'users', ARGV[6], 'channels', ARGV[7], 'watching', ARGV[8], 'can', ARGV[9])
-- A server with a lease was not declared dead: see declare_dead.lua.
if added > 0 and call('EXISTS', KEYS[2]) == 1 then
  call('DEL', KEYS[1])
  return -1
end
call('PEXPIRE', KEYS[1], ARGV[1])
return tonumber(call('HGET', KEYS[1], 'states_changed') or 0)
