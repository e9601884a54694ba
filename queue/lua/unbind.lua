#!lua flags=allow-oom
-- Ends a binding: the client is offline, its queue stays.
-- KEYS[1] c_{client}
-- ARGV[1] generation
-- returns 1; -1 if a higher generation is current; -2 if there is no record, or its
--         generation is lower
-- cost O(1)

local current = redis.call('HGET', KEYS[1], 'generation')
if current ~= ARGV[1] then
	return tonumber(current or 0) > tonumber(ARGV[1]) and -1 or -2
end
redis.call('HSET', KEYS[1], 'server', '')
return 1
