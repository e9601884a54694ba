#!lua flags=allow-oom
-- Removes what a client acknowledged from the head of its list, and what is malformed there.
-- KEYS[1] c_{client}
-- KEYS[2] mq_c_{client}
-- ARGV[1] generation
-- ARGV[2] id up to which all is received
-- returns how many messages went; -1 when a higher generation is current, -2 when the store lost the record or
-- knows an older generation only
-- cost O(messages removed)

local record = redis.call('HMGET', KEYS[1], 'generation', 'last', 'acked')
if record[1] ~= ARGV[1] then
	return tonumber(record[1] or 0) > tonumber(ARGV[1]) and -1 or -2
end

local function id_of(element)
	local id = tonumber(string.match(element or '', '^(%d+):'))
	return id and id <= 9007199254740991 and id or nil
end

-- An id from the future would hide messages that are yet to come.
local last = math.max(tonumber(record[2] or 0), id_of(redis.call('LINDEX', KEYS[2], -1)) or 0)
local id = math.min(tonumber(ARGV[2]), last)
local removed, done = 0, 0
repeat
	local chunk = redis.call('LRANGE', KEYS[2], 0, 15)
	done = 0
	for _, element in ipairs(chunk) do
		local held = id_of(element)
		if held and held > id then
			break
		end
		done = done + 1
		removed = removed + (held and 1 or 0)
	end
	if done > 0 then
		redis.call('LTRIM', KEYS[2], done, -1)
	end
until done < 16

redis.call('HSET', KEYS[1], 'last', string.format('%.0f', last),
	'acked', string.format('%.0f', math.max(tonumber(record[3] or 0), id)))
return removed
