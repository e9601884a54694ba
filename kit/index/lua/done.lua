#!lua
-- Ends a lease: makes the id due later, or removes it, unless it was scheduled or taken again.
-- KEYS[1] ix_d_{NAME}
-- ARGV[1] id
-- ARGV[2] end of the caller's lease, Unix ms
-- ARGV[3] time until the id is due again, ms; 0 removes it
-- returns 1 if the lease was the current one, else 0
-- cost O(log n)

local score = redis.call('ZSCORE', KEYS[1], ARGV[1])
if score and tonumber(score) == tonumber(ARGV[2]) then
	if ARGV[3] == '0' then
		redis.call('ZREM', KEYS[1], ARGV[1])
	else
		local t = redis.call('TIME')
		redis.call('ZADD', KEYS[1], t[1] * 1000 + math.floor(t[2] / 1000) + ARGV[3], ARGV[1])
	end
	return 1
end
return 0
