#!lua
-- Adds a user to the list of those whose tokens were revoked lately, or whose subscriptions have
-- changed, with a number that is higher than all others. Removes old entries.
-- KEYS[1] u_revoked
-- ARGV[1] user, or a line feed and a client without a user
-- ARGV[2] TTL of the list and of its entries, ms
-- returns the number, about the present time in Unix ms
-- cost O(log n) and the removed entries
local time = redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local last = redis.call('ZREVRANGE', KEYS[1], '0', '0', 'WITHSCORES')[2]
local number = math.max(now, tonumber(last or 0) + 1)
redis.call('ZADD', KEYS[1], string.format('%.0f', number), ARGV[1])
redis.call('ZREMRANGEBYSCORE', KEYS[1], '-inf', string.format('(%.0f', now - ARGV[2]))
redis.call('PEXPIRE', KEYS[1], ARGV[2])
return number
