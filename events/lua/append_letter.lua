-- A piece of other scripts: append_letter appends the event of a dead letter to an outbox, with its
-- id. outbox is ev_out_{evN}, meta is ev_m_{evN}, and letter is <reason>:<ms>:<event>. The rest are
-- the limits of the outbox, events and bytes, and the retention in ms.
-- returns whether there was room
-- cost O(1)

local call = redis.call
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)

local function append_letter(outbox, meta, letter, most, most_bytes, retention)
	local length, bytes = call('LLEN', outbox), 0
	if length > 0 then -- else the events that out_bytes counts have expired
		bytes = tonumber(call('HGET', meta, 'out_bytes') or 0)
	end
	if length >= most or length > 0 and bytes + #letter > most_bytes then
		return false
	end
	-- A sequence number is at least 4096 × the time in ms since 2020-01-01 UTC (1577836800000).
	local seq = math.max((ms - 1577836800000) * 4096, tonumber(call('HGET', meta, 'last') or 0) + 1)
	local event = string.format('%d', seq) .. string.match(letter, '^%a+:%d+(:.*)$')
	call('RPUSH', outbox, event)
	call('HSET', meta, 'last', string.format('%d', seq), 'out_bytes', bytes + #event)
	call('PEXPIRE', outbox, retention)
	call('PEXPIRE', meta, retention)
	return true
end
