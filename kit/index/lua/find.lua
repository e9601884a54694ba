#!lua
-- Gives takers places of documents, each a different place.
-- For each taker:
-- KEYS[k+1] ix_l_{NAME}: the prefix of the lists
-- KEYS[k+2] ix_d_{NAME}
-- KEYS[k+3] ix_p_{NAME}: the reservations: taker -> list and id
-- KEYS[k+4] ix_pe_{NAME}: takers by the end of their reservation, Unix ms
-- KEYS[k+5] ix_pn_{NAME}: id -> number of reservations; and a space and an id -> the places of a
--           document that is being made, the list for which it is made, and all of its lists
-- KEYS[k+6] ix_pm_{NAME}: the prefix of the lists of documents that are being made, by time, Unix
--           ms
-- ARGV[a+1] list
-- ARGV[a+2] taker
-- ARGV[a+3] ids that the taker does not want, separated by spaces
-- ARGV[a+4] id of the new document
-- ARGV[a+5] places of the new document
-- ARGV[a+6] lists of the new document, separated by spaces; ARGV[a+1] is one of them
-- ARGV[a+7] time until the document is due, ms
-- ARGV[a+8] how long the place is reserved, ms
-- returns for each taker {id, the list for which the document is being made or '', 1 if it is the
--         new one, otherwise 0}; or an error
-- cost O(log n) for each taker, and O(1) for each document before the one that is found, in which
--         all free places are reserved

local call, format = redis.call, string.format
local t = call('TIME')
local now = t[1] * 1000 + math.floor(t[2] / 1000)
local takers = #ARGV / 8
local keys_per_taker = #KEYS / takers

-- How long the keys stay after the last search.
local keep = '3600000'

local function find(k, a)
	local list, taker, new = ARGV[a+1], ARGV[a+2], ARGV[a+4]
	local lists, reserved, ends, numbers, making = KEYS[k+1], KEYS[k+3], KEYS[k+4], KEYS[k+5], KEYS[k+6]
	local r, refused = reservations(reserved, ends, numbers, making), {}
	for id in string.gmatch(ARGV[a+3], '%S+') do
		refused[id] = true
	end
	local function list_of(id) -- for which a document is being made
		local place = call('HGET', numbers, ' ' .. id)
		return place and string.match(place, '^%S+ (%S+)') or ''
	end

	for _, who in ipairs(call('ZRANGEBYSCORE', ends, '-inf', now, 'LIMIT', '0', '100')) do
		r.release(who)
	end
	local before = call('HGET', reserved, taker)
	local of, again = string.match(before or '', '^(%S+) (.*)$')
	if of == list and not refused[again] then -- a repeated search
		call('ZADD', KEYS[k+2], 'LT', now + ARGV[a+7], again)
		return {again, list_of(again), 0}
	end
	r.release(taker)

	-- Returns the first document of a list that has a free place. places returns how many places the
	-- documents of a page have.
	local function first(key, places)
		local from = 0
		while true do
			local page = call('ZRANGE', key, format('%d', from), format('%d', from + 99))
			if #page > 0 then
				local free, taken = places(page), call('HMGET', numbers, unpack(page))
				for i = 1, #page do
					-- A card that an earlier release has stored does not say how many.
					if not refused[page[i]] and tonumber(free[i] or 1) > tonumber(taken[i] or 0) then
						return page[i]
					end
				end
			end
			if #page < 100 then
				return
			end
			from = from + 100
		end
	end

	local made, is_new = '', 0
	local found = first(lists .. list, function(page)
		return call('ZMSCORE', lists .. 'places', unpack(page))
	end) or first(making .. list, function(page)
		local names = {}
		for i = 1, #page do
			names[i] = ' ' .. page[i]
		end
		local places = call('HMGET', numbers, unpack(names))
		for i = 1, #page do
			places[i] = places[i] and string.match(places[i], '^%d+') or 0
		end
		return places
	end)
	if not found then
		found, is_new = new, 1
		call('HSET', numbers, ' ' .. new, ARGV[a+5] .. ' ' .. list .. ' ' .. ARGV[a+6])
		for name in string.gmatch(ARGV[a+6], '%S+') do
			call('ZADD', making .. name, now, new)
			call('PEXPIRE', making .. name, keep)
		end
	end

	if not call('ZSCORE', lists .. taker, found) then -- otherwise its card counts the taker
		call('HSET', reserved, taker, list .. ' ' .. found)
		call('ZADD', ends, now + ARGV[a+8], taker)
		call('HINCRBY', numbers, found, '1')
		call('PEXPIRE', reserved, keep)
		call('PEXPIRE', ends, keep)
		call('PEXPIRE', numbers, keep)
	end
	call('ZADD', KEYS[k+2], 'LT', now + ARGV[a+7], found)
	return {found, list_of(found), is_new}
end

-- An error of one taker does not affect the others.
local replies = {}
for i = 1, takers do
	local ok, reply = pcall(find, (i - 1) * keys_per_taker, (i - 1) * 8)
	replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
