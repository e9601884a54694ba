#!lua flags=allow-oom
-- Removes what a client acknowledged from the head of its list, and what is malformed there.
-- KEYS[1] c_{client}
-- KEYS[2] mq_c_{client}
-- KEYS[3] mq_f_{client}, left out at first
-- ARGV[1] generation
-- ARGV[2] id up to which all is received
-- returns how many messages went; {} when nothing is done yet, for some up to that id may be of groups, so that KEYS[3] is
--         needed; with that {how many messages went, the id that counts, user, group...}, of the groups that are to be
--         withdrawn from the user's other clients: see forget; -1 when a higher generation is current, -2 when the store
--         lost the record or knows an older generation only
-- cost O(messages removed + groups)

local call = redis.call
local record = call('HMGET', KEYS[1], 'generation', 'last', 'acked', 'first', 'floor', 'user')
if record[1] ~= ARGV[1] then
	return tonumber(record[1] or 0) > tonumber(ARGV[1]) and -1 or -2
end

local function id_of(element)
	local id = tonumber(string.match(element or '', '^(%d+):'))
	return id and id <= 9007199254740991 and id or nil
end

local chunk = call('LRANGE', KEYS[2], '0', '15')
local tail = #chunk < 16 and chunk[#chunk] or call('LINDEX', KEYS[2], '-1')
local newest, last = id_of(tail) or 0, tonumber(record[2] or 0)
if newest > last then
	last = newest -- a backend that writes by itself leaves its id here only
	call('HSET', KEYS[1], 'last', last)
end
-- An id from the future would hide messages that are yet to come.
local id = math.min(tonumber(ARGV[2]), last)
local to, acked, first = string.format('%d', id), tonumber(record[3] or -1), tonumber(record[4] or nil)
if first and id >= first then
	if not KEYS[3] then
		return {}
	end
	-- Nobody has received what the cap dropped, or what expired, before it was acknowledged. No list: all of it.
	call('ZREMRANGEBYSCORE', KEYS[3], '(' .. string.format('%d', acked), #chunk == 0 and '+inf' or record[5] or '0')
end
local removed, emptied = 0, #chunk > 0
while true do
	local done = 0
	for _, element in ipairs(chunk) do
		local held = id_of(element)
		if held and held > id then
			break
		end
		done = done + 1
		removed = removed + (held and 1 or 0)
	end
	if done > 0 then
		call('LTRIM', KEYS[2], done, '-1')
	end
	if done < 16 then
		emptied = emptied and done == #chunk
		break
	end
	chunk = call('LRANGE', KEYS[2], '0', '15')
end

-- An empty list with more behind what was acknowledged has expired. What is missing behind it here was withdrawn.
id = emptied and last or id
if id > acked then
	call('HSET', KEYS[1], 'acked', string.format('%d', id))
end
if not KEYS[3] then
	return removed
end
local reply = {removed, to, record[6] or ''}
for _, member in ipairs(call('ZRANGE', KEYS[3], '-inf', to, 'BYSCORE')) do
	if not string.find(member, '^%d') then -- what begins with a digit was withdrawn from this client
		reply[#reply + 1] = member
	end
end
return reply
