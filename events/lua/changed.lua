#!lua
-- Notes that entries changed: each is to be looked at now, or later when it is told present.
-- Of each shard:
-- KEYS[k+1] ev_due_{evN}
-- KEYS[k+2] ev_told_{evN}
-- ARGV[a+1] grace of an entry that is told present, ms
-- ARGV[a+2] entries, u:<user> or c:<channel>, with newlines between
-- For all:
-- ARGV[1] cap of a due list, entries
-- ARGV[2] retention, ms
-- returns for each shard a digit for every entry: 1, or 0 when the due list is full; or its error
-- cost O(entries × log due list)

local call = redis.call
local cap, retention = tonumber(ARGV[1]), ARGV[2]
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)

local function note(k, a)
	local due, entries, noted = KEYS[k+1], {}, {}
	for entry in string.gmatch(ARGV[a+2], '[^\n]+') do
		entries[#entries + 1] = entry
	end
	local told = call('HMGET', KEYS[k+2], unpack(entries))
	local soon, later = string.format('%d', ms), string.format('%d', ms + tonumber(ARGV[a+1]))
	local room = cap - call('ZCARD', due)
	for i, entry in ipairs(entries) do
		-- An entry that is listed already needs no room.
		if room <= 0 and not call('ZSCORE', due, entry) then
			noted[i] = '0'
		else
			room = room - call('ZADD', due, told[i] and later or soon, entry)
			noted[i] = '1'
		end
	end
	call('PEXPIRE', due, retention)
	return table.concat(noted)
end

-- What is wrong with the keys of one shard is no reason to note nothing in the others.
local replies = {}
for i = 1, #KEYS / 2 do
	local done, reply = pcall(note, 2 * i - 2, 2 * i)
	replies[i] = (done or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
