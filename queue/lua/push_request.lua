#!lua
-- Appends a client request for the backend's workers.
-- KEYS[1] qq_{N}
-- ARGV[1] request, JSON
-- ARGV[2] cap, requests
-- returns 1, or 0 when the list is full
-- cost O(1)

if redis.call('LLEN', KEYS[1]) >= tonumber(ARGV[2]) then
	return 0
end
redis.call('RPUSH', KEYS[1], ARGV[1])
return 1
