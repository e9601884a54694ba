#!lua flags=allow-oom
-- Removes the message of a group from clients' lists, after another client acknowledged its copy.
-- The floor stays, so that the clients see no gap. In mq_f_ the message's id replaces the group, so
-- that confirm_client does not consider the message lost.
-- For each client:
-- KEYS[k+1] c_{client}
-- KEYS[k+2] mq_c_{client}
-- KEYS[k+3] mq_f_{client}
-- ARGV[i] group
-- returns for each client 1 if the message was removed, else 0; or an error
-- cost O(messages up to it)

local call, format = redis.call, string.format

local function id_of(element)
	local id = tonumber(string.match(element or '', '^(%d+):'))
	return id and id <= 9007199254740991 and id or nil
end

-- find returns the element with an id.
local function find(list, id)
	local from, chunk = 0, nil
	repeat
		chunk = call('LRANGE', list, from, from + 63)
		for _, element in ipairs(chunk) do
			local element_id = id_of(element)
			if element_id and element_id >= id then
				return element_id == id and element or nil
			end
		end
		from = from + 64
	until #chunk < 64
end

local function withdraw(i)
	local k = 3 * (i - 1)
	local record_key, list, groups = KEYS[k+1], KEYS[k+2], KEYS[k+3]
	local id = tonumber(call('ZSCORE', groups, ARGV[i]) or nil)
	if not id then
		return 0
	end
	local record = call('HMGET', record_key, 'last', 'acked', 'floor')
	local last, acked, floor = tonumber(record[1] or 0), tonumber(record[2] or 0), tonumber(record[3] or 0)
	local element = find(list, id)
	if element then
		call('ZADD', groups, format('%d', id), format('%d', id))
		call('LREM', list, '1', element)
		-- An empty list with last above acked counts as expired. This list did not expire, so acked
		-- becomes last.
		if floor <= acked and call('EXISTS', list) == 0 then
			call('HSET', record_key, 'acked', format('%d', math.max(last, id)))
		end
	end
	call('ZREM', groups, ARGV[i])
	return element and 1 or 0
end

-- An error of one client does not affect the others.
local replies = {}
for i = 1, #ARGV do
	local ok, reply = pcall(withdraw, i)
	replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
