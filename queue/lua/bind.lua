#!lua
-- Makes a server the owner of a client under a new generation.
-- KEYS[1] c_{client}
-- KEYS[2] mq_c_{client}
-- ARGV[1] user, empty for none
-- ARGV[2] server
-- ARGV[3] TTL of the record, ms
-- ARGV[4] what the clock must show at least, Unix ms
-- ARGV[5] instance of the client, empty when it does not say
-- ARGV[6] attempt of that instance, a number that grows
-- returns {generation, server until now, user until now, generation until now, acked, messages waiting,
-- last id ever assigned, what the clock shows, Unix ms}; {-1} when a later attempt of the same instance bound it already;
-- {} when the client is another user's
-- cost O(1)

local call = redis.call
-- until is when the record expires at the earliest: see append_client. A client that comes back soon renews nothing.
local record = call('HMGET', KEYS[1], 'user', 'server', 'generation', 'acked', 'last', 'instance', 'attempt', 'until')
local user, server, before, acked = record[1] or '', record[2] or '', record[3] or '0', record[4] or '0'
local queued = call('LLEN', KEYS[2])
if ARGV[5] ~= '' and record[6] == ARGV[5] and tonumber(record[7] or 0) > tonumber(ARGV[6]) then
	return {-1}
end
if user ~= '' and user ~= ARGV[1] then
	if server ~= '' or queued > 0 then
		return {}
	end
	-- The device changed hands: what the former user missed is no gap to the new one.
	-- Ids go on, since they must grow as long as the record lives.
	acked = record[5] or '0'
	call('HSET', KEYS[1], 'acked', acked, 'floor', '0')
end

local now = call('TIME')
local ms = math.max(now[1] * 1000 + math.floor(now[2] / 1000), tonumber(ARGV[4]))
local generation = string.format('%.0f', math.max((ms - 1577836800000) * 4096, tonumber(before) + 1))
local fields = {'user', ARGV[1], 'server', ARGV[2], 'generation', generation, 'since', string.format('%.0f', ms)}
local function also(name, value)
	fields[#fields + 1], fields[#fields + 2] = name, value
end
if ARGV[5] ~= '' then
	also('instance', ARGV[5])
	also('attempt', ARGV[6])
elseif record[6] then
	call('HDEL', KEYS[1], 'instance', 'attempt')
end
local needed = tonumber(ARGV[3])
if queued > 0 then
	needed = math.max(needed, call('PTTL', KEYS[2]))
end
local renew = tonumber(record[8] or 0) < ms + needed
if renew then
	needed = needed + math.floor(ARGV[3] / 8)
	also('until', string.format('%.0f', ms + needed))
end
call('HSET', KEYS[1], unpack(fields))
if renew then
	call('PEXPIRE', KEYS[1], needed)
end
return {generation, server, user, before, acked, queued, record[5] or '0', string.format('%.0f', ms)}
