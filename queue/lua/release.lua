#!lua flags=allow-oom
-- Makes a client offline if the server owns it. The janitor runs it for dead servers.
-- KEYS[1] c_{client}
-- ARGV[1] server
-- returns {user, generation}, or {} if the server is not the owner
-- cost O(1)

local record = redis.call('HMGET', KEYS[1], 'server', 'user', 'generation')
if record[1] ~= ARGV[1] then
	return {}
end
redis.call('HSET', KEYS[1], 'server', '')
return {record[2] or '', record[3] or '0'}
