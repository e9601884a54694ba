-- A piece of find.lua and put.lua: the places of documents that are reserved for takers.
-- returns (reservations) functions on the reservations in four keys, see find.lua
-- cost O(log n) for each reservation

local function reservations(reserved, ends, numbers, making)
	local call, r = redis.call, {}

	-- Records that a document is not being made any more: it has a card, or no taker is left.
	function r.end_making(id)
		local place = call('HGET', numbers, ' ' .. id)
		if place then
			call('HDEL', numbers, ' ' .. id)
			for list in string.gmatch(place, ' (%S+)') do
				call('ZREM', making .. list, id)
			end
		end
	end

	-- Ends the reservation of a taker, or the one in a document.
	function r.release(taker, in_document)
		local place = call('HGET', reserved, taker)
		local id = place and string.match(place, '^%S+ (.*)$')
		if not id or in_document and in_document ~= id then
			return
		end
		call('HDEL', reserved, taker)
		call('ZREM', ends, taker)
		if call('HINCRBY', numbers, id, '-1') <= 0 then
			call('HDEL', numbers, id)
			r.end_making(id)
		end
	end

	return r
end
