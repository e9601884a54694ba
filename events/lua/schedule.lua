#!lua
-- Schedules checks of entries: now, or after the grace if the entry is reported present.
-- For each shard:
-- KEYS[k+1] ev_due_{evN}
-- KEYS[k+2] ev_told_{evN}
-- ARGV[a+1] grace of an entry that is reported present, ms
-- ARGV[a+2] entries, u:<user> or c:<channel>, separated by newlines
-- For all shards:
-- ARGV[1] limit of a due list, entries
-- ARGV[2] retention, ms
-- returns for each shard a string with a digit for each entry: 1, or 0 if the due list is full; or
-- an error
-- cost O(entries × log due list)

local call = redis.call
local limit, retention = tonumber(ARGV[1]), ARGV[2]
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)

local function schedule(k, a)
	local due, entries, digits = KEYS[k+1], {}, {}
	for entry in string.gmatch(ARGV[a+2], '[^\n]+') do
		entries[#entries + 1] = entry
	end
	local reported = call('HMGET', KEYS[k+2], unpack(entries))
	local at, afterGrace = string.format('%d', ms), string.format('%d', ms + tonumber(ARGV[a+1]))
	local room = limit - call('ZCARD', due)
	for i, entry in ipairs(entries) do
		-- An entry that is on the list already needs no room.
		if room <= 0 and not call('ZSCORE', due, entry) then
			digits[i] = '0'
		else
			room = room - call('ZADD', due, reported[i] and afterGrace or at, entry)
			digits[i] = '1'
		end
	end
	call('PEXPIRE', due, retention)
	return table.concat(digits)
end

-- An error in one shard must not affect the other shards.
local replies = {}
for i = 1, #KEYS / 2 do
	local ok, reply = pcall(schedule, 2 * i - 2, 2 * i)
	replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
