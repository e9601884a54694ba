#!lua flags=no-writes
-- Reads the last id that was assigned in each of many clients' queues, and the client's generation.
-- For each client:
-- KEYS[k+1] c_{client}
-- KEYS[k+2] mq_c_{client}
-- ARGV[a+1] last id that the caller knows
-- ARGV[a+2] generation that the caller knows
-- ARGV[a+3] 1 if the caller expects that the list is empty, else 0
-- returns for each client 0 if id and generation are as the caller knows; else, separated by
--         newlines: id, -1 if the newest element is malformed; generation, 0 without a record; or
--         an error
-- cost O(1) for each, one command if the list is empty as expected, else two; the newest element is
--      copied

local known_empty = find_empty(#KEYS / 2, function(i)
	local a = 3 * i - 3
	return ARGV[a+3] == '1' and KEYS[2 * i]
end)

local function head(i)
	local k, a = 2 * i - 2, 3 * i - 3
	local record = call('HMGET', KEYS[k+1], 'last', 'generation')
	local last = tonumber(record[1] or 0)
	local newest = not known_empty[i] and call('LINDEX', KEYS[k+2], '-1')
	if newest then
		local id = tonumber(string.match(newest, '^(%d+):'))
		last = id and id <= 9007199254740991 and math.max(last, id) or -1
	end
	local generation = record[2] or '0'
	return last == tonumber(ARGV[a+1]) and generation == ARGV[a+2] and 0 or format('%.0f\n%s', last, generation)
end

return each_head(#KEYS / 2, head)
