-- A piece of other scripts: append_event appends an event to an outbox. If the outbox is too large,
-- its oldest events move to the dead letters. If those are too many, the oldest are dropped.
-- returns the number of older events that were moved to the dead letters
-- cost O(events moved or dropped)

local call = redis.call
local now = call('TIME')
local ms = now[1] * 1000 + math.floor(now[2] / 1000)
local time = string.format('%d', ms)

-- outbox is ev_out_{evN}, dead is ev_dead_{evN}, meta is ev_m_{evN}. id may be empty for
-- <seq>-<shard>. body is the JSON of the event after its id and time. limits are those of the
-- outbox, events and bytes, and of the dead letters, events and bytes, and the retention in ms.
local function append_event(outbox, dead, meta, shard, id, body, limits)
	-- A sequence number is at least 4096 × the time in ms since 2020-01-01 UTC (1577836800000).
	local seq = string.format('%d', math.max((ms - 1577836800000) * 4096, tonumber(call('HGET', meta, 'last') or 0) + 1))
	if id == '' then
		id = seq .. '-' .. shard
	end
	local event = seq .. ':{"id":"' .. id .. '","at":' .. time .. ',' .. body
	local length, bytes = call('RPUSH', outbox, event), #event
	if length > 1 then -- else the events that out_bytes counts have expired
		bytes = bytes + tonumber(call('HGET', meta, 'out_bytes') or 0)
	end

	local moved, letter_bytes = 0, 0
	while length > 1 and (length > limits[1] or bytes > limits[2]) do
		local oldest = call('LPOP', outbox)
		length, bytes = length - 1, bytes - #oldest
		local letter = 'full:' .. time .. string.match(oldest, '^%d+(:.*)$')
		call('RPUSH', dead, letter)
		moved, letter_bytes = moved + 1, letter_bytes + #letter
	end
	call('HSET', meta, 'last', seq, 'out_bytes', bytes)
	if moved > 0 then
		local letters = call('LLEN', dead)
		if letters == moved then
			call('HDEL', meta, 'dead_bytes') -- the dead letters that it counted have expired
		end
		local size = call('HINCRBY', meta, 'dead_bytes', letter_bytes)
		while letters > 1 and (letters > limits[3] or size > limits[4]) do
			letters = letters - 1
			size = call('HINCRBY', meta, 'dead_bytes', -#call('LPOP', dead))
			call('HINCRBY', meta, 'dropped', 1)
		end
		call('PEXPIRE', dead, limits[5])
	end
	call('PEXPIRE', outbox, limits[5])
	call('PEXPIRE', meta, limits[5])
	return moved
end

