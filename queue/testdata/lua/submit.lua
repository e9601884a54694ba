-- A piece of update_state.lua for tests: a board with the best score of each player. The first
-- operation of the update sets the best player. u.arg is the player and a score.
-- KEYS[k+1] lb_{channel}
-- returns (extend) the best score of the player
-- cost O(log n)

own_keys = 1

function extend(u, k)
	local key, player, score = KEYS[k+1], string.match(u.arg, '^(%a+) (%d+)$')
	local old, first = call('ZSCORE', key, player), call('ZREVRANGE', key, '0', '0', 'WITHSCORES')
	if old and tonumber(old) >= tonumber(score) then
		u.ops = {}
		return old
	end
	if first[2] and tonumber(first[2]) >= tonumber(score) then
		u.ops = {}
	else
		local op = u.ops[1]
		op.value = '"' .. player .. '"'
	end
	return score, function()
		call('ZADD', key, score, player)
	end
end
