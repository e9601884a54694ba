-- A piece of update_state.lua for tests: a board with the best score of each player. The first
-- operation of the update sets the best player. u[14] is the player and a score.
-- KEYS[k+1] lb_{channel}
-- returns (extend) the best score of the player
-- cost O(log n)

own_keys = 1

function extend(u, k)
	local key, player, score = KEYS[k+1], string.match(u[14], '^(%a+) (%d+)$')
	local old, first = call('ZSCORE', key, player), call('ZREVRANGE', key, '0', '0', 'WITHSCORES')
	if old and tonumber(old) >= tonumber(score) then
		u[1] = {}
		return old
	end
	if first[2] and tonumber(first[2]) >= tonumber(score) then
		u[1] = {}
	else
		u[1][1][3] = '"' .. player .. '"'
	end
	return score, function()
		call('ZADD', key, score, player)
	end
end
