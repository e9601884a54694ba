#!lua
-- Renews a client's record for twice its TTL and asserts its owner. A record that was lost, or that went
-- back to an older binding in a failover, is made again: generations only grow, so the
-- higher one is the later one.
-- KEYS[1] c_{client}
-- KEYS[2] mq_c_{client}
-- ARGV[1] user, empty for none
-- ARGV[2] server
-- ARGV[3] generation
-- ARGV[4] TTL of the record, ms
-- ARGV[5] what the clock must show at least, Unix ms
-- returns 1, or 0 when the generation is stale
-- cost O(1)

local current = redis.call('HGET', KEYS[1], 'generation') or '0'
if tonumber(current) > tonumber(ARGV[3]) then
	return 0
end
local ttl = 2 * ARGV[4]
if current == ARGV[3] then
	redis.call('HSET', KEYS[1], 'server', ARGV[2], 'until', string.format('%.0f', ARGV[5] + ttl))
	redis.call('PEXPIRE', KEYS[1], string.format('%.0f', ttl), 'GT') -- a list may need it for longer
	return 1
end
local now = redis.call('TIME')
redis.call('HSET', KEYS[1], 'user', ARGV[1], 'generation', ARGV[3], 'server', ARGV[2], 'until', '0',
	'since', string.format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000)))
redis.call('PEXPIRE', KEYS[1], math.max(ttl, redis.call('PTTL', KEYS[2])))
return 1
