#!lua flags=allow-oom
-- Removes what a client acknowledged from the head of its list, and what is malformed there.
-- KEYS[1] c_{client}
-- KEYS[2] mq_c_{client}
-- ARGV[1] generation
-- ARGV[2] id up to which all is received
-- returns how many messages went; -1 when a higher generation is current, -2 when the store lost the record or
-- knows an older generation only
-- cost O(messages removed)

local call = redis.call
local record = call('HMGET', KEYS[1], 'generation', 'last', 'acked')
if record[1] ~= ARGV[1] then
	return tonumber(record[1] or 0) > tonumber(ARGV[1]) and -1 or -2
end

local function id_of(element)
	local id = tonumber(string.match(element or '', '^(%d+):'))
	return id and id <= 9007199254740991 and id or nil
end

local chunk = call('LRANGE', KEYS[2], '0', '15')
local tail = #chunk < 16 and chunk[#chunk] or call('LINDEX', KEYS[2], '-1')
local newest, last = id_of(tail) or 0, tonumber(record[2] or 0)
if newest > last then
	last = newest -- a backend that writes by itself leaves its id here only
	call('HSET', KEYS[1], 'last', last)
end
-- An id from the future would hide messages that are yet to come.
local id = math.min(tonumber(ARGV[2]), last)
local removed = 0
while true do
	local done = 0
	for _, element in ipairs(chunk) do
		local held = id_of(element)
		if held and held > id then
			break
		end
		done = done + 1
		removed = removed + (held and 1 or 0)
	end
	if done > 0 then
		call('LTRIM', KEYS[2], done, '-1')
	end
	if done < 16 then
		break
	end
	chunk = call('LRANGE', KEYS[2], '0', '15')
end

if id > tonumber(record[3] or -1) then
	call('HSET', KEYS[1], 'acked', string.format('%d', id))
end
return removed
