#!lua
-- Ends leases: makes each id due later, or removes it, unless it was scheduled or taken again.
-- KEYS[1] ix_d_{NAME}
-- For each id:
-- ARGV[i] id
-- ARGV[i+1] end of the caller's lease, Unix ms
-- ARGV[i+2] time until the id is due again, ms; 0 removes it
-- returns the number of leases that were the current ones
-- cost O(log n) for each id

local call = redis.call
local t = call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local ended = 0
for i = 1, #ARGV, 3 do
	local id, score = ARGV[i], call('ZSCORE', KEYS[1], ARGV[i])
	if score and tonumber(score) == tonumber(ARGV[i+1]) then
		if ARGV[i+2] == '0' then
			call('ZREM', KEYS[1], id)
		else
			call('ZADD', KEYS[1], now + ARGV[i+2], id)
		end
		ended = ended + 1
	end
end
return ended
