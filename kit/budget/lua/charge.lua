#!lua
-- Charges an object to its owner.
-- KEYS[1] bu_{OWNER}:KIND
-- ARGV[1] id of the object
-- ARGV[2] most objects
-- ARGV[3] TTL of the key, ms; 0 for none
-- returns 1 if the object was added, 0 if it was there, -1 if the owner has the most objects
-- cost O(log n)

local call = redis.call
local t = call('TIME')
local known = call('ZSCORE', KEYS[1], ARGV[1])
if not known and call('ZCARD', KEYS[1]) >= tonumber(ARGV[2]) then
	return -1
end
call('ZADD', KEYS[1], t[1] * 1000 + math.floor(t[2] / 1000), ARGV[1])
if tonumber(ARGV[3]) > 0 then
	call('PEXPIRE', KEYS[1], ARGV[3])
else
	call('PERSIST', KEYS[1])
end
return known and 0 or 1
