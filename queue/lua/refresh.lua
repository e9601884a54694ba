#!lua
-- Renews the records of clients for twice their TTL and sets their owners. A failover may have lost
-- a record, or taken it back to an older binding. Generations only grow, so a record with a lower
-- generation is replaced.
-- For each client:
-- KEYS[k+1] c_{client}
-- KEYS[k+2] mq_c_{client}
-- ARGV[a+1] user, empty for none
-- ARGV[a+2] server
-- ARGV[a+3] generation
-- ARGV[a+4] hash of the secret, empty for a client with a user
-- For all:
-- ARGV[1] TTL of the records, ms
-- ARGV[2] minimum that the clock must show, Unix ms
-- returns for each client 1, or 0 if the generation is stale; or an error
-- cost O(clients)

local call, format = redis.call, string.format
local ttl = 2 * ARGV[1]
local now = call('TIME')

local function refresh(k, a)
	local current = call('HGET', KEYS[k+1], 'generation') or '0'
	if tonumber(current) > tonumber(ARGV[a+3]) then
		return 0
	end
	if current == ARGV[a+3] then
		call('HSET', KEYS[k+1], 'server', ARGV[a+2], 'until', format('%.0f', ARGV[2] + ttl))
		call('PEXPIRE', KEYS[k+1], format('%.0f', ttl), 'GT') -- the list may live longer
		return 1
	end
	call('HSET', KEYS[k+1], 'user', ARGV[a+1], 'generation', ARGV[a+3], 'server', ARGV[a+2], 'until', '0',
		'since', format('%.0f', now[1] * 1000 + math.floor(now[2] / 1000)))
	if ARGV[a+4] ~= '' then
		call('HSET', KEYS[k+1], 'secret', ARGV[a+4])
	end
	call('PEXPIRE', KEYS[k+1], math.max(ttl, call('PTTL', KEYS[k+2])))
	return 1
end

-- An error of one client does not affect the others.
local replies = {}
for i = 1, #KEYS / 2 do
	local ok, reply = pcall(refresh, 2 * i - 2, 4 * i - 2)
	replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
