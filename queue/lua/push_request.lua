#!lua
-- Appends a client request for the backend's workers, if the list and the sender's share of it have
-- room. Workers pop from the head (LPOP, BLPOP) without telling this package. A ledger therefore
-- holds the sender and the size of each request, in the order of the list. It is longer than the
-- list by the requests popped since the last push: the script first removes these from the head of
-- the ledger and from the sums. If something else changes the list, the sums are wrong until the
-- list is empty once; then ledger and sums are deleted. A push sets the same TTL for all three
-- keys.
-- KEYS[1] qq_{N}
-- KEYS[2] qq_o_{N}
-- KEYS[3] qq_s_{N}
-- ARGV[1] request, JSON
-- ARGV[2] sender, without spaces
-- ARGV[3] most requests
-- ARGV[4] most bytes; a larger request is accepted if the list is empty
-- ARGV[5] most requests of one sender
-- ARGV[6] most bytes of one sender; a larger request is accepted if it is the sender's only one
-- ARGV[7] TTL after this push, ms
-- returns 0 if the request was stored, else the number of the ARGV that refused it
-- cost O(1), and O(1) for each request that was popped since the last push

local call = redis.call
local request, sender, size = ARGV[1], ARGV[2], #ARGV[1]
local count_field, bytes_field = 'n ' .. sender, 'b ' .. sender

local held = call('LLEN', KEYS[1])
if held == 0 then
	call('DEL', KEYS[2], KEYS[3])
end
local popped = math.max(call('LLEN', KEYS[2]) - held, 0)
while popped > 0 do
	local entries = call('LPOP', KEYS[2], math.min(popped, 1000))
	popped = popped - #entries
	local counts, sizes, total = {}, {}, 0
	for _, entry in ipairs(entries) do
		local n, from = string.match(entry, '^(%d+) (.*)$')
		counts[from] = (counts[from] or 0) + 1
		sizes[from] = (sizes[from] or 0) + tonumber(n)
		total = total + tonumber(n)
	end
	for from, n in pairs(counts) do
		if call('HINCRBY', KEYS[3], 'n ' .. from, -n) <= 0 then
			call('HDEL', KEYS[3], 'n ' .. from, 'b ' .. from)
		else
			call('HINCRBY', KEYS[3], 'b ' .. from, -sizes[from])
		end
	end
	call('HINCRBY', KEYS[3], 'bytes', -total)
end

local sums = call('HMGET', KEYS[3], 'bytes', count_field, bytes_field)
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
call('HINCRBY', KEYS[3], count_field, 1)
call('HINCRBY', KEYS[3], bytes_field, size)
call('PEXPIRE', KEYS[1], ARGV[7])
call('PEXPIRE', KEYS[2], ARGV[7])
call('PEXPIRE', KEYS[3], ARGV[7])
return 0
