#!lua flags=no-writes
-- Reads the messages with ids above an id in the window, the first messages of a client's list. It
-- also returns the malformed elements in the window. No client acknowledges them, so a caller that
-- delivers the messages removes them.
-- KEYS[1] c_{client}
-- KEYS[2] mq_c_{client}
-- ARGV[1] generation, or '' for any
-- ARGV[2] after, an id
-- ARGV[3] most messages
-- ARGV[4] messages in the window, a multiple of 32
-- ARGV[5] most bytes
-- returns {floor, last, more 0 or 1, {element...}}; {-1} if a higher generation is
--         current; {-2} if there is no record, or its generation is lower
-- cost O(window)

local record = redis.call('HMGET', KEYS[1], 'generation', 'last', 'acked', 'floor')
if ARGV[1] == '' then
	if redis.call('EXISTS', KEYS[1]) == 0 then
		return {-2}
	end
elseif record[1] ~= ARGV[1] then
	return {tonumber(record[1] or 0) > tonumber(ARGV[1]) and -1 or -2}
end

local function id_of(element)
	local id = tonumber(string.match(element or '', '^(%d+):'))
	return id and id <= 9007199254740991 and id or nil
end

local last, floor = tonumber(record[2] or 0), tonumber(record[4] or 0)
local tail = redis.call('LINDEX', KEYS[2], -1)
if tail then
	last = math.max(last, id_of(tail) or 0)
elseif last > math.max(tonumber(record[3] or 0), floor) then
	floor = last -- the list expired
end

local after, limit, window, max_bytes = tonumber(ARGV[2]), tonumber(ARGV[3]), tonumber(ARGV[4]), tonumber(ARGV[5])
local elements, bytes = {}, 0
local more = redis.call('LLEN', KEYS[2]) > window
local full = false
-- In chunks, so that a page of large messages does not copy the whole window.
for from = 0, window - 1, 32 do
	local chunk = redis.call('LRANGE', KEYS[2], from, from + 31)
	for _, element in ipairs(chunk) do
		if (id_of(element) or math.huge) > after then
			if #elements == limit or (#elements > 0 and bytes + #element > max_bytes) then
				more, full = true, true
				break
			end
			elements[#elements + 1] = element
			bytes = bytes + #element
		end
	end
	if full or #chunk < 32 then
		break
	end
end
return {string.format('%.0f', floor), string.format('%.0f', last), more and 1 or 0, elements}
