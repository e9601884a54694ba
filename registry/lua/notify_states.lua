#!lua flags=allow-oom
-- Tells a live server that states of its channels have changed. It also runs in a full Redis: the
-- server would otherwise not read the entries. A server without a lease gets none.
-- KEYS[1] s_{server}
-- returns the new number, or 0 if the server has no lease
-- cost O(1)
if redis.call('EXISTS', KEYS[1]) == 0 then return 0 end
-- The first number of a lease is the time in µs. So it differs from all numbers of a former lease.
local time = redis.call('TIME')
local now = string.format('%.0f', time[1] * 1000000 + time[2])
redis.call('HSETNX', KEYS[1], 'states_changed', now)
return redis.call('HINCRBY', KEYS[1], 'states_changed', 1)
