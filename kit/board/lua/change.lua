-- A piece of update_state.lua: changes the score of one player of a board, or removes the player.
-- The operation of the update sets the field top, and is left out if the first ten do not change.
-- u.arg has, separated by spaces: best, set, add or remove; the score; the player; the season, its
-- start and its end (Unix ms), '-' 0 and 2^53-1 for a board without seasons; the end of the keys
-- (Unix ms), 0 for never; most players; 1 if the lowest score is first, -1 for the highest; TTL of
-- the operation id (ms), 0 for none; 1 if the season need not be the current one.
-- KEYS[k+1] lb_{board:NAME}:SEASON
-- KEYS[k+2] lb_p_{board:NAME}:SEASON
-- KEYS[k+3] lb_o_{board:NAME}:PLAYER OPERATION
-- returns (extend) the score, '-' for none; the score before, '-' for none; the rank, 0 for none;
--         the number of players; the season in which it counted, '-' for a board without seasons;
--         and the word again if the operation was known. The reply is also the value of KEYS[k+3].
--         The update is refused by a condition on $expired if the season is not the current one,
--         and on $range if the sum is not exact
-- cost O(log n); ten players are read if the first ten change

own_keys = 3

-- Returns the value of the field top after the change. old is a member that leaves the board, and
-- player enters it at place; both may be nil.
local function encode_top(board, head, sign, old, player, place)
	local found, list = call('ZRANGE', board, '0', '10', 'WITHSCORES'), {}
	local function add(name, at)
		if #list < 10 then
			name = string.gsub(name, '["\\]', '\\%0')
			list[#list + 1] = format('{"player":"%s","score":%d}', name, at * sign)
		end
	end
	for i = 1, #found, 2 do
		local at = tonumber(found[i+1])
		if place and place < at then
			add(player, place)
			place = nil
		end
		if found[i] ~= old then
			add(string.sub(found[i], 14), at)
		end
	end
	if place then
		add(player, place)
	end
	return head .. table.concat(list, ',') .. ']}'
end

-- Returns whether the first ten may change: a player leaves or enters them.
local function touches_top(board, old, old_place, place)
	local tenth = call('ZRANGE', board, '9', '9', 'WITHSCORES')
	local last = tonumber(tenth[2])
	return not last or place and place < last or old and (old_place < last or old_place == last and old <= tenth[1])
end

function extend(u, k)
	local board, players, operation = KEYS[k+1], KEYS[k+2], KEYS[k+3]
	local what, score, player, season, from, till, forget, most, sign, remember, any_season = string.match(u.arg,
		'^(%a+) (%-?%d+) (%S+) (%S+) (%d+) (%d+) (%d+) (%d+) (%-?1) (%d+) ([01])$')
	score, till, sign = tonumber(score), tonumber(till), tonumber(sign)
	local op = u.ops[1] -- sets the field top
	u.ops = {}
	local function refuse_by(name)
		local cond = {}
		cond.field, cond.id = name, '1' -- no field has the id 1
		u.conditions = {cond}
	end
	local first = remember ~= '0' and call('GET', operation)
	if first then
		return first .. ' again', function()
			call('SET', operation, first, 'KEEPTTL') -- a WAIT covers only writes on its own connection
		end
	end
	local current = ms >= tonumber(from) and ms < till
	if not current and any_season == '0' then
		refuse_by('$expired')
		return
	end

	-- A member is the arrival, 12 hexadecimal digits, and the player. Places ascend: the score, or its
	-- negative if the highest is first. So members with one score are ordered by arrival.
	local known, n = call('HMGET', players, player, ''), call('ZCARD', board)
	local old, old_score, old_place
	if known[1] then
		local arrival
		old_score, arrival = string.match(known[1], '^(%-?%d+) (%x+)$')
		old, old_score = arrival .. ':' .. player, tonumber(old_score)
		old_place = old_score * sign
	end
	local new = nil
	if what == 'add' then
		new = (old_score or 0) + score
		if math.abs(new) > 9007199254740991 then
			refuse_by('$range')
			return
		end
	elseif what == 'set' or what == 'best' then
		new = what == 'best' and old and old_place <= score * sign and old_score or score
	end

	local changed, place, fallen, rank = new ~= old_score, new and new * sign, 0, 0
	if new and not old and n >= tonumber(most) then
		if place >= tonumber(call('ZRANGE', board, '-1', '-1', 'WITHSCORES')[2]) then
			changed, new = false, nil
		else
			fallen = math.min(n + 1 - most, 100) -- the limit may have been higher
		end
	end
	if changed and new then
		rank = call('ZCOUNT', board, '-inf', format('%d', place)) + (old and old_place <= place and 0 or 1)
	elseif old and new then
		rank = call('ZRANK', board, old) + 1
	end
	local count = n
	if changed and (not old or not new) then
		count = old and n - 1 or n + 1 - fallen
	end

	if current and (changed or n > 0) then
		local head = (season == '-' and '{' or '{"season":"' .. season .. '",') .. '"entries":['
		local top = get('top')
		local text = top and value_of(top)
		if not text or string.sub(text, 1, #head) ~= head or changed and touches_top(board, old, old_place, place) then
			local after = encode_top(board, head, sign, changed and old, player, changed and place)
			if after ~= text then
				op.value, op.lease = after, season ~= '-' and till - ms or nil
				u.ops = {op}
			end
		end
	end

	local reply = format('%s %s %d %d %s', new and format('%d', new) or '-', old and format('%d', old_score) or '-', rank, count,
		season)
	return reply, function()
		if changed and new then
			local arrival = tonumber(known[2] or 0)
			local key = format('%012x', arrival)
			call('ZADD', board, format('%d', place), key .. ':' .. player)
			call('HSET', players, player, format('%d %s', new, key), '', format('%d', arrival + 1))
		end
		if changed and old then
			call('ZREM', board, old) -- last, so that the key of a single player keeps its TTL
			if not new then
				call('HDEL', players, player)
			end
		end
		if fallen > 0 then
			local out = call('ZPOPMAX', board, format('%d', fallen))
			for i = 1, #out, 2 do
				call('HDEL', players, string.sub(out[i], 14))
			end
		end
		if forget ~= '0' and (season == '-' or changed and new and n == 0) then
			call('PEXPIREAT', board, forget)
			call('PEXPIREAT', players, forget)
		end
		if remember ~= '0' then
			call('SET', operation, reply, 'PX', remember)
		end
	end
end
