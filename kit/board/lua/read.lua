#!lua flags=no-writes
-- Reads a part of a board.
-- KEYS[1] lb_{board:NAME}:SEASON
-- KEYS[2] lb_p_{board:NAME}:SEASON
-- ARGV[1] a player, in which case the part begins ARGV[2] places before it; or nothing
-- ARGV[2] how many places are left out before the part
-- ARGV[3] most players
-- returns the number of players, and how many are before the part, -1 if ARGV[1] is not on the
--         board; then member and place of each player
-- cost O(log n + players)

local from = tonumber(ARGV[2])
local reply = {redis.call('ZCARD', KEYS[1]), from}
if ARGV[1] ~= '' then
	local record = redis.call('HGET', KEYS[2], ARGV[1])
	local rank = record and redis.call('ZRANK', KEYS[1], string.match(record, '%x+$') .. ':' .. ARGV[1])
	if not rank then
		reply[2] = -1
		return reply
	end
	from = math.max(rank - from, 0)
	reply[2] = from
end
for _, word in ipairs(redis.call('ZRANGE', KEYS[1], from, from + ARGV[3] - 1, 'WITHSCORES')) do
	reply[#reply + 1] = word
end
return reply
