#!lua flags=allow-oom
-- Ends leases of a process.
-- KEYS[i] ix_r_{rounds}:NAME, or j_r_{rounds}:NAME
-- ARGV[1] id of the process
-- returns the number of leases that the process had
-- cost O(leases)

local ended = 0
for i = 1, #KEYS do
	local value = redis.call('GET', KEYS[i])
	if value and string.match(value, '^%S+') == ARGV[1] then
		ended = ended + redis.call('DEL', KEYS[i])
	end
end
return ended
