#!lua flags=no-writes
-- Counts the events of a shard that wait, and returns the last attempt to send them.
-- KEYS[1] ev_out_{evN}
-- KEYS[2] ev_dead_{evN}
-- KEYS[3] ev_m_{evN}
-- returns {events in the outbox, dead letters, dead letters dropped since the keys exist,
--         the first event's <seq>, 0 for none, failed attempts since the last successful one,
--         the time of the next attempt in Unix ms, 0 for now,
--         the last answer: <Unix ms> <status> <error>, empty for none}
-- cost O(1)

local call = redis.call
local first = string.match(call('LINDEX', KEYS[1], 0) or '', '^%d+') or '0'
local meta = call('HMGET', KEYS[3], 'dropped', 'attempts', 'retry_at', 'answer')
return {
	call('LLEN', KEYS[1]), call('LLEN', KEYS[2]), tonumber(meta[1] or 0), tonumber(first),
	tonumber(meta[2] or 0), tonumber(meta[3] or 0), meta[4] or '',
}
