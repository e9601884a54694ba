#!lua flags=no-writes
-- Reads the id of the newest message of each of many channels. If a channel holds none, it is the
-- last id that was assigned.
-- For each channel:
-- KEYS[k+1] mq_ch_{channel}
-- KEYS[k+2] mq_m_{channel}
-- ARGV[a+1] newest id that the caller knows
-- ARGV[a+2] 1 if the caller expects that the channel holds no message, else 0
-- returns for each channel 0 if both are as the caller knows; else id, newline, 1 if it holds no
--         message, else 0; or an error
-- cost O(log n) for each, one command if the newest id is the known one, or if the channel holds no
--      message as expected; the newest message is copied

local known_empty = find_empty(#KEYS / 2, function(i)
	local k, a = 2 * i - 2, 2 * i - 2
	return ARGV[a+2] == '1' and KEYS[k+1]
end)

local function head(i)
	local k, a = 2 * i - 2, 2 * i - 2
	local known, newest = tonumber(ARGV[a+1])
	if not known_empty[i] then
		-- Scores above 2^53 are no ids.
		newest = call('ZRANGE', KEYS[k+1], '9007199254740991', '-inf', 'BYSCORE', 'REV', 'LIMIT', '0', '1', 'WITHSCORES')[2]
		newest = newest and math.floor(tonumber(newest))
	end
	local id, empty = newest, newest and '0' or '1'
	if newest ~= known then
		id = math.max(tonumber(call('HGET', KEYS[k+2], 'last') or 0), newest or 0)
	end
	return id == known and empty == ARGV[a+2] and 0 or format('%.0f\n%s', id, empty)
end

return each_head(#KEYS / 2, head)
