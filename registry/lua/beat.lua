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
-- returns 1, or 0 if the server was declared dead
-- cost O(1)
if redis.call('EXISTS', KEYS[2]) == 1 then return 0 end
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
redis.call('HSET', KEYS[1],
  'host', ARGV[2], 'version', ARGV[3], 'started_at', ARGV[4], 'last_active', string.format('%.0f', now),
  'connections', ARGV[5], 'users', ARGV[6], 'channels', ARGV[7], 'watching', ARGV[8])
redis.call('PEXPIRE', KEYS[1], ARGV[1])
return 1
