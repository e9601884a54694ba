#!lua
-- Reads the versions of cards.
-- KEYS[1] ix_{NAME}
-- ARGV[i] ids
-- returns the version of each id, 0 for none
-- cost O(ids)

local versions = {}
for i = 1, #ARGV do
	local record = redis.call('HGET', KEYS[1], ARGV[i])
	versions[i] = record and not string.match(record, '^[^\n]*\n0\n') and string.match(record, '^[^\n]*') or '0'
end
return versions
