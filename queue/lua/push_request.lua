#!lua
-- Appends a client request for the backend's workers, if the list has room, and its sender a share of it left.
-- Workers pop from the head (LPOP, BLPOP) and tell nothing. So a ledger names the sender and the size of each request,
-- in the list's order: it is longer than the list by what was popped since the last push, and that is taken from
-- its head, and from the sums, first. If something else changes the list the sums are off until it is empty once: then
-- ledger and sums begin anew. All three keys live as long after a push, so they expire together.
-- KEYS[1] qq_{N}
-- KEYS[2] qq_o_{N}
-- KEYS[3] qq_s_{N}
-- ARGV[1] request, JSON
-- ARGV[2] sender, without spaces
-- ARGV[3] cap, requests
-- ARGV[4] cap, bytes; one larger request is taken alone, as in ARGV[6]
-- ARGV[5] share of a sender, requests
-- ARGV[6] share of a sender, bytes
-- ARGV[7] TTL after this push, ms
-- returns 0 when it is stored, else the number of the ARGV that refuses it
-- cost O(1), and O(1) for each request that was popped since the last push

local call = redis.call
local request, sender, size = ARGV[1], ARGV[2], #ARGV[1]
local count = 'n ' .. sender
local bytes = 'b ' .. sender

local held = call('LLEN', KEYS[1])
if held == 0 then
	call('DEL', KEYS[2], KEYS[3])
end
local popped = math.max(call('LLEN', KEYS[2]) - held, 0)
while popped > 0 do
	local gone = call('LPOP', KEYS[2], math.min(popped, 1000))
	popped = popped - #gone
	local counts, sums, total = {}, {}, 0
	for _, entry in ipairs(gone) do
		local n, who = string.match(entry, '^(%d+) (.*)$')
		counts[who] = (counts[who] or 0) + 1
		sums[who] = (sums[who] or 0) + tonumber(n)
		total = total + tonumber(n)
	end
	for who, n in pairs(counts) do
		if call('HINCRBY', KEYS[3], 'n ' .. who, -n) <= 0 then
			call('HDEL', KEYS[3], 'n ' .. who, 'b ' .. who)
		else
			call('HINCRBY', KEYS[3], 'b ' .. who, -sums[who])
		end
	end
	call('HINCRBY', KEYS[3], 'bytes', -total)
end

local sums = call('HMGET', KEYS[3], 'bytes', count, bytes)
local own = tonumber(sums[2] or 0)
if held >= tonumber(ARGV[3]) then
	return 3
elseif held > 0 and tonumber(sums[1] or 0) + size > tonumber(ARGV[4]) then
	return 4
elseif own >= tonumber(ARGV[5]) then
	return 5
elseif own > 0 and tonumber(sums[3] or 0) + size > tonumber(ARGV[6]) then
	return 6
end
call('RPUSH', KEYS[1], request)
call('RPUSH', KEYS[2], size .. ' ' .. sender)
call('HINCRBY', KEYS[3], 'bytes', size)
call('HINCRBY', KEYS[3], count, 1)
call('HINCRBY', KEYS[3], bytes, size)
call('PEXPIRE', KEYS[1], ARGV[7])
call('PEXPIRE', KEYS[2], ARGV[7])
call('PEXPIRE', KEYS[3], ARGV[7])
return 0
