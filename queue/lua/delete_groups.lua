#!lua flags=allow-oom
-- Deletes the groups of messages that a client acknowledged, after the other copies were withdrawn.
-- Until then every acknowledgement and every bind finds the groups again.
-- KEYS[1] c_{client}
-- KEYS[2] mq_f_{client}
-- ARGV[1] id up to which the client acknowledged, as returned by ack
-- returns {}
-- cost O(log n + groups)

redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[1])
local lowest = redis.call('ZRANGE', KEYS[2], '0', '0', 'WITHSCORES')[2]
if not lowest then
	redis.call('HDEL', KEYS[1], 'first')
elseif redis.call('EXISTS', KEYS[1]) == 1 then -- otherwise HSET would make a record without a TTL
	redis.call('HSET', KEYS[1], 'first', lowest)
end
return {}
