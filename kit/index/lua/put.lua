#!lua
-- Stores cards, unless a newer one is stored, or was removed.
-- KEYS[1] ix_{NAME}
-- KEYS[2] ix_t_{NAME}
-- KEYS[3] ix_l_{NAME}: the prefix of the lists
-- KEYS[4] ix_p_{NAME}
-- KEYS[5] ix_pe_{NAME}
-- KEYS[6] ix_pn_{NAME}
-- KEYS[7] ix_pm_{NAME}: the prefix of the lists of documents that are being made
-- For each card:
-- ARGV[i] id
-- ARGV[i+1] version
-- ARGV[i+2] its lists, a line for each: name, space, score. A card without lists is removed
-- ARGV[i+3] data
-- returns the number of cards that were stored or removed
-- cost O(log n) for each list of each card

local call = redis.call

-- Returns whether the version a is lower than b. They are compared as text, because a number of Lua
-- has only 53 bits.
local function lower(a, b)
	return #a < #b or #a == #b and a < b
end

local function lists_of(text)
	local lists = {}
	for name, score in string.gmatch(text, '([^ \n]+) ([^\n]+)') do
		lists[name] = score
	end
	return lists
end

local t = call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local stored = 0
local r = call('EXISTS', KEYS[6]) == 1 and reservations(KEYS[4], KEYS[5], KEYS[6], KEYS[7])

for i = 1, #ARGV, 4 do
	local id, version, lines, data = ARGV[i], ARGV[i+1], ARGV[i+2], ARGV[i+3]
	local record = call('HGET', KEYS[1], id)
	local old_version, count, rest = '', '0', ''
	if record then
		old_version, count, rest = string.match(record, '^([^\n]*)\n([^\n]*)\n(.*)$')
	end
	if not lower(version, old_version) then
		local old, at = {}, 1
		for _ = 1, tonumber(count) do
			local stop = string.find(rest, '\n', at, true)
			local name, score = string.match(string.sub(rest, at, stop - 1), '^([^ ]+) (.+)$')
			old[name], at = score, stop + 1
		end
		local new, n = lists_of(lines), 0
		for name in pairs(old) do
			if not new[name] then
				call('ZREM', KEYS[3] .. name, id)
			end
		end
		for name, score in pairs(new) do
			n = n + 1
			if old[name] ~= score then
				call('ZADD', KEYS[3] .. name, score, id)
			end
			if r and not old[name] then
				r.release(name, id) -- from now on the card counts this taker
			end
		end
		if n > 0 then
			call('HSET', KEYS[1], id, version .. '\n' .. n .. '\n' .. lines .. '\n' .. data)
			call('ZREM', KEYS[2], id)
			if r then
				r.end_making(id)
			end
		else
			call('HSET', KEYS[1], id, version .. '\n0\n')
			call('ZADD', KEYS[2], now, id)
		end
		stored = stored + 1
	end
end
return stored
