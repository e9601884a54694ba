#!lua
-- Schedules checks of the fields of channels. A check that is scheduled for an earlier time stays.
-- A claim ends, so that its end does not remove the check; the entry is due no later than without
-- it.
-- For each shard:
-- KEYS[k+1] ev_due_{evN}
-- KEYS[k+2] ev_fields_{evN}
-- ARGV[a+1] 1 to track channels that are not tracked, 0 to ignore them
-- ARGV[a+2] <time of the check, Unix ms; 0 for none> f:<channel>, separated by newlines
-- For all shards:
-- ARGV[1] limit of the tracked channels
-- ARGV[2] age up to which the log of a newly tracked channel is checked, ms
-- ARGV[3] retention, ms
-- returns for each shard a string with a digit for each check: 1, or 0 if too many channels are
-- tracked; or an error
-- cost O(checks × log due list)

local call = redis.call
local limit, look_back, retention = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3]
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local time = string.format('%d', ms)
-- The id of a message is at least 4096 × the time in ms since 2020-01-01 UTC (1577836800000).
local first = string.format('%d', math.max(0, (ms - look_back - 1577836800000) * 4096))

local function schedule(k, a)
	local due, fields, track, digits = KEYS[k+1], KEYS[k+2], ARGV[a+1] == '1', {}
	local room = limit - call('HLEN', fields)
	for at, entry in string.gmatch(ARGV[a+2], '(%d+) ([^\n]+)') do
		local reported, empty = string.match(call('HGET', fields, entry) or '', '^(%d+) %d+ (%d)$')
		local digit = '1'
		if not reported and track then
			if room > 0 then
				room, reported, empty = room - 1, first, '1'
			else
				digit = '0'
			end
		end
		if reported and track then
			call('HSET', fields, entry, reported .. ' ' .. time .. ' ' .. empty)
		end
		if reported and at ~= '0' then
			local score = call('ZSCORE', due, entry)
			if score then
				at = string.format('%d', math.min(tonumber(at), math.floor(tonumber(score))))
			end
			call('ZADD', due, at, entry)
		end
		digits[#digits + 1] = digit
	end
	call('PEXPIRE', due, retention)
	call('PEXPIRE', fields, retention)
	return table.concat(digits)
end

-- An error in one shard must not affect the other shards.
local replies = {}
for i = 1, #KEYS / 2 do
	local ok, reply = pcall(schedule, 2 * i - 2, 2 * i + 1)
	replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
