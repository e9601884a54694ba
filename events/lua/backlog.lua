#!lua flags=no-writes
-- Counts the events of a shard that wait.
-- KEYS[1] ev_out_{evN}
-- KEYS[2] ev_dead_{evN}
-- KEYS[3] ev_m_{evN}
-- returns {events in the outbox, dead letters, dead letters dropped since the keys exist,
--         the first event's <seq>, 0 for none}
-- cost O(1)

local call = redis.call
local first = string.match(call('LINDEX', KEYS[1], 0) or '', '^%d+') or '0'
return {call('LLEN', KEYS[1]), call('LLEN', KEYS[2]), tonumber(call('HGET', KEYS[3], 'dropped') or 0), tonumber(first)}
