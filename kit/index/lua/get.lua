#!lua
-- Reads cards.
-- KEYS[1] ix_{NAME}
-- ARGV[i] ids
-- returns the record of each id: the version, the number of lists, the lists and the data, each
--         after a newline; or nothing
-- cost O(ids)

local records = {}
for i = 1, #ARGV do
	local record = redis.call('HGET', KEYS[1], ARGV[i])
	records[i] = record and not string.match(record, '^[^\n]*\n0\n') and record or ''
end
return records
