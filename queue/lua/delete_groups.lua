#!lua flags=allow-oom
-- Forgets the groups of which a client has acknowledged its message, when they are withdrawn from the user's other
-- clients. Until then every acknowledgement and every bind finds them again.
-- KEYS[1] c_{client}
-- KEYS[2] mq_f_{client}
-- ARGV[1] id up to which all is received, as ack returned it
-- returns {}
-- cost O(log n + groups)

redis.call('ZREMRANGEBYSCORE', KEYS[2], '-inf', ARGV[1])
local lowest = redis.call('ZRANGE', KEYS[2], '0', '0', 'WITHSCORES')[2]
if not lowest then
	redis.call('HDEL', KEYS[1], 'first')
elseif redis.call('EXISTS', KEYS[1]) == 1 then -- else it would have no TTL
	redis.call('HSET', KEYS[1], 'first', lowest)
end
return {}
