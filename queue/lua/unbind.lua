#!lua flags=allow-oom
-- Ends a binding: the client is offline, its queue stays.
-- KEYS[1] c_{client}
-- ARGV[1] generation
-- returns 1, or 0 when the generation is not the current one
-- cost O(1)

if redis.call('HGET', KEYS[1], 'generation') ~= ARGV[1] then
	return 0
end
redis.call('HSET', KEYS[1], 'server', '')
return 1
