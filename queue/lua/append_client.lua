#!lua
-- Stores one message for each of many clients under the next id, drops the oldest messages beyond
-- the cap, and returns the owner. Either all messages have an idempotency key, or none; and either
-- all have a group, or none.
-- For each client:
-- KEYS[k+1] c_{client}
-- KEYS[k+2] mq_c_{client}
-- KEYS[k+3] mq_kc_{client}:<key>, omitted without an idempotency key
-- KEYS[k+keys_per_client] mq_f_{client}, omitted without a group
-- ARGV[a+1] data, compact JSON
-- ARGV[a+2] user that the client must belong to, empty for any
-- ARGV[a+3] minimum TTL of the list, ms, empty for ARGV[2]; it lives up to an eighth longer
-- ARGV[a+4] group, which does not begin with a digit; omitted without a group
-- For all:
-- ARGV[1] most messages
-- ARGV[2] TTL of a list for a push without a TTL, ms
-- ARGV[3] minimum TTL of the records, ms; they live up to an eighth longer, and no less
--         than the list
-- ARGV[4] TTL of the idempotency keys, ms
-- ARGV[5] minimum that the clock must show, Unix ms
-- ARGV[6] 1 if the callers wait for replicas, else 0
-- ARGV[7] 1 if another Redis may have taken over lately, else 0
-- ARGV[8] arguments of each client: 4 with groups, else 3
-- returns for each client, separated by newlines: id, id before it, duplicate 0 or 1, the
--         clock (Unix ms), generation, server; or '' if the client is not the user's; or an error
-- cost O(1 + messages dropped)

local call, format, max, floor_of = redis.call, string.format, math.max, math.floor
local now = call('TIME')
local ms = max(now[1] * 1000 + floor_of(now[2] / 1000), tonumber(ARGV[5]))
local max_messages, record_ttl = tonumber(ARGV[1]), tonumber(ARGV[3])
local args = tonumber(ARGV[8])
local count = (#ARGV - 8) / args
local keys_per_client = #KEYS / count
local grouped = args == 4
local keyed = keys_per_client == (grouped and 4 or 3)

local function id_of(element)
	local id = tonumber(string.match(element or '', '^(%d+):'))
	return id and id <= 9007199254740991 and id or nil
end

-- add_to_group adds the message of a client to a group.
local function add_to_group(record_key, groups, group, id, ttl)
	local first = tonumber(call('HGET', record_key, 'first') or nil)
	if not first then
		call('DEL', groups) -- left by an expired record, or by a former user of the client
	end
	call('ZADD', groups, id, group)
	if not first or tonumber(id) < first then
		call('HSET', record_key, 'first', id)
	end
	-- At most max_messages groups have a waiting message, and as many withdrawn messages are kept.
	local surplus = call('ZCARD', groups) - 2 * max_messages
	if surplus > 0 then
		call('ZPOPMIN', groups, surplus)
	end
	if call('PTTL', groups) < ttl then
		call('PEXPIRE', groups, ttl)
	end
end

local function append(i)
	local k, a = i * keys_per_client, 8 + i * args
	local record_key, list, key = KEYS[k+1], KEYS[k+2], keyed and KEYS[k+3]
	-- until is the earliest time of the record's expiry. Most pushes find it late enough and do not
	-- renew the record.
	local record = call('HMGET', record_key, 'user', 'server', 'generation', 'last', 'acked', 'floor', 'until')
	if ARGV[a+2] ~= '' and record[1] ~= ARGV[a+2] then
		return ''
	end
	local server, generation = record[2] or '', record[3] or '0'
	if key then
		local first = call('GET', key)
		if first then
			if ARGV[6] == '1' then
				-- A WAIT covers only writes on its own connection.
				call('SET', key, first, 'KEEPTTL')
			end
			if grouped and tonumber(first) <= tonumber(record[5] or 0) then
				-- The client has acknowledged, and the push is repeated because it failed for other
				-- clients. The next acknowledgement or bind withdraws the new copies.
				add_to_group(record_key, KEYS[k+keys_per_client], ARGV[a+4], first, record_ttl)
			end
			return format('%s\n0\n1\n%d\n%s\n%s', first, ms, generation, server)
		end
	end

	local last, floor = tonumber(record[4] or 0), tonumber(record[6] or 0)
	local tail = call('LINDEX', list, '-1')
	if tail then
		last = max(last, id_of(tail) or 0) -- last does not include messages of other writers
	elseif last > max(tonumber(record[5] or 0), floor) then
		floor = last -- the list expired
	end

	local id = format('%d', max((ms - 1577836800000) * 4096, last + 1))
	local ttl = tonumber(ARGV[a+3] == '' and ARGV[2] or ARGV[a+3])
	local list_ttl = tail and call('PTTL', list) or -1
	local surplus = call('RPUSH', list, id .. ':' .. ARGV[a+1]) - max_messages
	if surplus > 0 then
		for _, oldest in ipairs(call('LPOP', list, surplus)) do
			floor = math.min(max(floor, id_of(oldest) or 0), last)
		end
	end

	if floor == tonumber(record[6] or -1) then
		call('HSET', record_key, 'last', id)
	else
		call('HSET', record_key, 'last', id, 'floor', floor)
	end
	if ARGV[7] == '1' then
		-- There is a cut before the first message of a new replication history: this store has no
		-- message between last and id, but the previous master may have had some, which are lost. The
		-- record keeps last and id for confirm_client: a client that acknowledges id has not received
		-- the lost messages.
		local info = redis.pcall('INFO', 'replication')
		local history = type(info) == 'string' and string.match(info, 'master_replid:(%x+)')
		local known = call('HMGET', record_key, 'history', 'cut', 'cut_to', 'lost')
		if history and history ~= known[1] then
			call('HSET', record_key, 'history', history, 'cut', last, 'cut_to', id,
				'older_cut', known[2] or '0', 'older_cut_to', known[3] or '0', 'older_lost', known[4] or '0')
		end
	end
	if not tail then
		list_ttl = ttl -- the usual case: the client has acknowledged everything
		call('PEXPIRE', list, list_ttl)
	elseif list_ttl < ttl then
		list_ttl = ttl + floor_of(ttl / 8)
		call('PEXPIRE', list, list_ttl)
	end
	local needed = max(list_ttl, record_ttl)
	if tonumber(record[7] or 0) < ms + needed then
		needed = needed + floor_of(record_ttl / 8)
		call('PEXPIRE', record_key, needed)
		call('HSET', record_key, 'until', ms + needed)
	end
	if grouped then
		add_to_group(record_key, KEYS[k+keys_per_client], ARGV[a+4], id, needed)
	end
	if key then
		call('SET', key, id, 'PX', ARGV[4])
	end
	return format('%s\n%d\n0\n%d\n%s\n%s', id, last, ms, generation, server)
end

-- An error of one client does not affect the others.
local replies = {}
for i = 1, count do
	local ok, reply = pcall(append, i - 1)
	replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
