#!lua flags=no-writes
-- Reads the record of a client.
-- KEYS[1] c_{client}
-- KEYS[2] mq_c_{client}
-- returns {user, server, generation, since (Unix ms), messages waiting, last id, highest
--         acknowledged id, secret's hash in hexadecimal}, or {} if the client is unknown
-- cost O(1)

if redis.call('EXISTS', KEYS[1]) == 0 then
	return {}
end

local function id_of(element)
	local id = tonumber(string.match(element or '', '^(%d+):'))
	return id and id <= 9007199254740991 and id or nil
end

local record = redis.call('HMGET', KEYS[1], 'user', 'server', 'generation', 'since', 'last', 'acked', 'secret')
local last = math.max(tonumber(record[5] or 0), id_of(redis.call('LINDEX', KEYS[2], -1)) or 0)
return {record[1] or '', record[2] or '', record[3] or '0', record[4] or '0',
	redis.call('LLEN', KEYS[2]), string.format('%.0f', last), record[6] or '0', record[7] or ''}
