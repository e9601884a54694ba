#!lua flags=allow-oom
-- Removes acknowledged messages from the heads of clients' lists, and malformed elements there.
-- For each client:
-- KEYS[k+1] c_{client}
-- KEYS[k+2] mq_c_{client}
-- KEYS[k+3] mq_f_{client}, omitted in the first run
-- ARGV[a+1] generation
-- ARGV[a+2] highest acknowledged id
-- returns for each client the number of messages removed; -1 if a higher generation is
--         current; -2 if there is no record, or its generation is lower; or an error. If some
--         messages may have a group, the first run removes nothing and returns {}. The caller then
--         runs the script with KEYS[k+3], which returns {messages removed, highest acknowledged
--         id, user, group...}, withdraws the other copies of these groups and runs delete_groups
-- cost O(clients + messages removed + groups)

local call, format = redis.call, string.format
local keys_per_client = #KEYS / (#ARGV / 2)

local function id_of(element)
	local id = tonumber(string.match(element or '', '^(%d+):'))
	return id and id <= 9007199254740991 and id or nil
end

-- remove drops the elements up to id. chunk is the head of the list. It returns the number of
-- messages, and whether the list is empty now.
local function remove(list, chunk, id)
	local removed, emptied = 0, #chunk > 0
	while true do
		local done = 0
		for _, element in ipairs(chunk) do
			local element_id = id_of(element)
			if element_id and element_id > id then
				break
			end
			done = done + 1
			removed = removed + (element_id and 1 or 0)
		end
		if done > 0 then
			call('LTRIM', list, done, '-1')
		end
		if done < 16 then
			return removed, emptied and done == #chunk
		end
		chunk = call('LRANGE', list, '0', '15')
	end
end

local function acknowledge(i)
	local k, a = i * keys_per_client, i * 2
	local record_key, list, groups = KEYS[k+1], KEYS[k+2], keys_per_client == 3 and KEYS[k+3]
	local generation = ARGV[a+1]
	local record = call('HMGET', record_key, 'generation', 'last', 'acked', 'first')
	if record[1] ~= generation then
		return tonumber(record[1] or 0) > tonumber(generation) and -1 or -2
	end

	local chunk, text = call('LRANGE', list, '0', '15'), ARGV[a+2]
	if not record[4] and text == record[2] and #chunk == 1 and string.sub(chunk[1], 1, #text + 1) == text .. ':' then
		-- The usual case, the only message: 12 us of Redis' time, the general case takes 17.
		call('LTRIM', list, '1', '-1')
		call('HSET', record_key, 'acked', text)
		return 1
	end

	local tail = #chunk < 16 and chunk[#chunk] or call('LINDEX', list, '-1')
	local newest, last = id_of(tail) or 0, tonumber(record[2] or 0)
	if newest > last then
		last = newest -- a message of another writer: last does not include it
		call('HSET', record_key, 'last', format('%d', last))
	end
	-- An id above last would hide messages that come later.
	local id = math.min(tonumber(text), last)
	local acked, first = tonumber(record[3] or -1), tonumber(record[4] or nil)
	text = format('%d', id)
	if first and id >= first then
		if not groups then
			return {}
		end
		-- The client has not received messages that the cap or the TTL dropped before they were
		-- acknowledged: their groups have no effect. Without a list all messages have expired.
		local below = #chunk == 0 and '+inf' or call('HGET', record_key, 'floor') or '0'
		call('ZREMRANGEBYSCORE', groups, '(' .. format('%d', acked), below)
	end
	local removed, emptied = remove(list, chunk, id)

	-- If the list is empty now, the messages above id were withdrawn. acked then becomes last, since
	-- an empty list with last above acked counts as expired.
	id = emptied and last or id
	if id > acked then
		call('HSET', record_key, 'acked', format('%d', id))
	end
	if not groups then
		return removed
	end
	local reply = {removed, text, call('HGET', record_key, 'user') or ''}
	for _, member in ipairs(call('ZRANGE', groups, '-inf', text, 'BYSCORE')) do
		if not string.find(member, '^%d') then -- a member that begins with a digit is the id of a withdrawn message
			reply[#reply + 1] = member
		end
	end
	return reply
end

-- An error of one client does not affect the others.
local replies = {}
for i = 1, #ARGV / 2 do
	local ok, reply = pcall(acknowledge, i - 1)
	replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
