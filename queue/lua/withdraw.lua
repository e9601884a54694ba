#!lua flags=allow-oom
-- Takes out of each client's list the message of a group of which another client has acknowledged its own. The floor stays:
-- the client is told of no gap. The message's id takes the group's place, so that it is known not to be lost.
-- Of each client:
-- KEYS[k+1] c_{client}
-- KEYS[k+2] mq_c_{client}
-- KEYS[k+3] mq_f_{client}
-- ARGV[i] group
-- returns for each 1 when the message was taken out, else 0; or its error
-- cost O(messages up to it)

local call, format = redis.call, string.format

local function id_of(element)
	local id = tonumber(string.match(element or '', '^(%d+):'))
	return id and id <= 9007199254740991 and id or nil
end

-- find is the element with an id.
local function find(list, id)
	local from, chunk = 0, nil
	repeat
		chunk = call('LRANGE', list, from, from + 63)
		for _, element in ipairs(chunk) do
			local held = id_of(element)
			if held and held >= id then
				return held == id and element or nil
			end
		end
		from = from + 64
	until #chunk < 64
end

local function withdraw(i)
	local k = 3 * (i - 1)
	local at, list, firsts = KEYS[k+1], KEYS[k+2], KEYS[k+3]
	local id = tonumber(call('ZSCORE', firsts, ARGV[i]) or nil)
	if not id then
		return 0
	end
	local record = call('HMGET', at, 'last', 'acked', 'floor')
	local last, acked, floor = tonumber(record[1] or 0), tonumber(record[2] or 0), tonumber(record[3] or 0)
	local element = find(list, id)
	if element then
		call('ZADD', firsts, format('%d', id), format('%d', id))
		call('LREM', list, '1', element)
		-- A list that is empty although there is more than was acknowledged has expired. This one has not.
		if floor <= acked and call('EXISTS', list) == 0 then
			call('HSET', at, 'acked', format('%d', math.max(last, id)))
		end
	end
	call('ZREM', firsts, ARGV[i])
	return element and 1 or 0
end

-- What is wrong with one client is that one's own.
local replies = {}
for i = 1, #ARGV do
	local done, reply = pcall(withdraw, i)
	replies[i] = (done or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
