#!lua flags=no-writes
-- Reads a page of a board's records, with what the other key has for each of them.
-- KEYS[1] lb_{board:NAME}:SEASON
-- KEYS[2] lb_p_{board:NAME}:SEASON
-- ARGV[1] entries, to read the entries of KEYS[1], or players, for those of KEYS[2]
-- ARGV[2] the cursor of the page, 0 for the first one
-- ARGV[3] about how many records the page has
-- returns the next cursor, 0 after the last page; when KEYS[1] and KEYS[2] end, Unix ms, -1 for
--         never and -2 without a key; the next arrival, or ''; then for each entry its member, its
--         place and the record of its player, or ''; or for each player the name, the record, and
--         the place of its entry, or ''
-- cost O(log n) for each record of the page. A small key is one page

local call = redis.call

local reply = {'0', call('PEXPIRETIME', KEYS[1]), call('PEXPIRETIME', KEYS[2]), call('HGET', KEYS[2], '') or ''}
local function add(name, value, other)
	local n = #reply
	reply[n + 1], reply[n + 2], reply[n + 3] = name, value, other or ''
end
if ARGV[1] == 'entries' then
	local found = call('ZSCAN', KEYS[1], ARGV[2], 'COUNT', ARGV[3])
	reply[1] = found[1]
	for i = 1, #found[2], 2 do
		local member = found[2][i]
		add(member, found[2][i+1], call('HGET', KEYS[2], string.sub(member, 14)))
	end
else
	local found = call('HSCAN', KEYS[2], ARGV[2], 'COUNT', ARGV[3])
	reply[1] = found[1]
	for i = 1, #found[2], 2 do
		local player, record = found[2][i], found[2][i+1]
		if player ~= '' then
			add(player, record, call('ZSCORE', KEYS[1], (string.match(record, '%x+$') or '') .. ':' .. player))
		end
	end
end
return reply
