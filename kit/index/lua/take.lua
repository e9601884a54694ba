#!lua
-- Leases due ids to the caller.
-- KEYS[1] ix_d_{NAME}
-- ARGV[1] most ids
-- ARGV[2] lease, ms
-- returns the end of the lease, Unix ms, and the ids; or nothing
-- cost O(log n) for each id

local t = redis.call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local due = redis.call('ZRANGEBYSCORE', KEYS[1], '-inf', now, 'LIMIT', 0, ARGV[1])
if #due == 0 then
	return {}
end
local last = string.format('%d', now + ARGV[2])
for i = 1, #due do
	redis.call('ZADD', KEYS[1], last, due[i])
end
table.insert(due, 1, last)
return due
