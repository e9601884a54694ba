#!lua flags=allow-oom
-- Takes or renews leases that no other process has. It also runs in a full Redis, since rounds free
-- memory.
-- KEYS[i] ix_r_{rounds}:NAME, or j_r_{rounds}:NAME
-- ARGV[1] id of the process
-- ARGV[2] lease, ms
-- ARGV[i+2] 1 if the leader asks for help, else 0
-- returns for each lease 1 if the process has it, else 0
-- cost O(leases)

local call, id, held = redis.call, ARGV[1], {}
for i = 1, #KEYS do
	local value = call('GET', KEYS[i])
	if value and string.match(value, '^%S+') ~= id then
		held[i] = 0
	else
		call('SET', KEYS[i], id .. (ARGV[i+2] == '1' and ' help' or ''), 'PX', ARGV[2])
		held[i] = 1
	end
end
return held
