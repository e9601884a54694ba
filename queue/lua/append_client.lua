#!lua
-- Stores one message for each of many clients under the next id, drops the oldest while the list is
-- over its cap, and returns the owner. All have an idempotency key, or none has; all are of groups, of which only the
-- first acknowledgement counts, or none is.
-- Of each client:
-- KEYS[k+1] c_{client}
-- KEYS[k+2] mq_c_{client}
-- KEYS[k+3] mq_kc_{client}:<key>, left out without an idempotency key
-- KEYS[k+each] mq_f_{client}, left out without groups
-- ARGV[a+1] data, compact JSON
-- ARGV[a+2] user whose client it must be, empty for anybody's
-- ARGV[a+3] TTL that the list must have at least, ms, empty for ARGV[2]; it may get an eighth more
-- ARGV[a+4] group, which does not begin with a digit; left out without groups
-- For all:
-- ARGV[1] cap, messages
-- ARGV[2] TTL of a list whose push asks for none, ms
-- ARGV[3] TTL of the records, ms; likewise with an eighth more, and never less than the list has
-- ARGV[4] TTL of the idempotency keys, ms
-- ARGV[5] what the clock must show at least, Unix ms
-- ARGV[6] 1 when the callers wait for replicas, else 0: a duplicate writes its idempotency
--         key again then, since a WAIT covers what was written on its own connection
-- ARGV[7] 1 when this Redis may have taken another's place lately, else 0
-- ARGV[8] arguments of each client, 4 with groups, else 3
-- returns for each, with newlines between: id, id before it, duplicate 0 or 1, what the clock shows (Unix ms),
--         generation, server; or '' when the client is not the user's; or its error
-- cost O(1 + messages dropped)

local call, format, max, floor_of = redis.call, string.format, math.max, math.floor
local now = call('TIME')
local ms = max(now[1] * 1000 + floor_of(now[2] / 1000), tonumber(ARGV[5]))
local cap, record_ttl = tonumber(ARGV[1]), tonumber(ARGV[3])
local args = tonumber(ARGV[8])
local count = (#ARGV - 8) / args
local each = #KEYS / count
local grouped = args == 4
local keyed = each == (grouped and 4 or 3)

local function id_of(element)
	local id = tonumber(string.match(element or '', '^(%d+):'))
	return id and id <= 9007199254740991 and id or nil
end

-- join notes under which id a client has the message of a group.
local function join(at, firsts, group, id, ttl)
	local first = tonumber(call('HGET', at, 'first') or nil)
	if not first then
		call('DEL', firsts) -- of a record that expired, or of the device's former user
	end
	call('ZADD', firsts, id, group)
	if not first or tonumber(id) < first then
		call('HSET', at, 'first', id)
	end
	local many = call('ZCARD', firsts) - 2 * cap -- as many are withdrawn as are waiting, at most
	if many > 0 then
		call('ZPOPMIN', firsts, many)
	end
	if call('PTTL', firsts) < ttl then
		call('PEXPIRE', firsts, ttl)
	end
end

local function append(i)
	local k, a = i * each, 8 + i * args
	local at, list, key = KEYS[k+1], KEYS[k+2], keyed and KEYS[k+3]
	-- until is when the record expires at the earliest, so that not each push need renew it: see append_channel.
	local record = call('HMGET', at, 'user', 'server', 'generation', 'last', 'acked', 'floor', 'until')
	if ARGV[a+2] ~= '' and record[1] ~= ARGV[a+2] then
		return ''
	end
	local server, generation = record[2] or '', record[3] or '0'
	if key then
		local first = call('GET', key)
		if first then
			if ARGV[6] == '1' then
				call('SET', key, first, 'KEEPTTL')
			end
			if grouped and tonumber(first) <= tonumber(record[5] or 0) then
				-- Acknowledged, and the push is repeated, for it has not reached all: those that it reaches now are
				-- withdrawn by the next acknowledgement or bind.
				join(at, KEYS[k+each], ARGV[a+4], first, record_ttl)
			end
			return format('%s\n0\n1\n%d\n%s\n%s', first, ms, generation, server)
		end
	end

	local last, floor = tonumber(record[4] or 0), tonumber(record[6] or 0)
	local tail = call('LINDEX', list, '-1')
	if tail then
		last = max(last, id_of(tail) or 0) -- a backend that writes by itself leaves its id here only
	elseif last > max(tonumber(record[5] or 0), floor) then
		floor = last -- the list expired
	end

	local id = format('%d', max((ms - 1577836800000) * 4096, last + 1))
	local ttl = tonumber(ARGV[a+3] == '' and ARGV[2] or ARGV[a+3])
	local lives = tail and call('PTTL', list) or -1
	local surplus = call('RPUSH', list, id .. ':' .. ARGV[a+1]) - cap
	if surplus > 0 then
		for _, oldest in ipairs(call('LPOP', list, surplus)) do
			floor = math.min(max(floor, id_of(oldest) or 0), last)
		end
	end

	if floor == tonumber(record[6] or -1) then
		call('HSET', at, 'last', id)
	else
		call('HSET', at, 'last', id, 'floor', floor)
	end
	if ARGV[7] == '1' then
		-- The first message in a history of its own: between it and the last one this store never had any. An
		-- acknowledgement of it says nothing of those that the store before may have had there.
		local info = redis.pcall('INFO', 'replication')
		local history = type(info) == 'string' and string.match(info, 'master_replid:(%x+)')
		local held = call('HMGET', at, 'history', 'cut', 'cut_to', 'lost')
		if history and history ~= held[1] then
			call('HSET', at, 'history', history, 'cut', last, 'cut_to', id,
				'older_cut', held[2] or '0', 'older_cut_to', held[3] or '0', 'older_lost', held[4] or '0')
		end
	end
	if not tail then
		lives = ttl -- the usual case, a client that has acknowledged all
		call('PEXPIRE', list, lives)
	elseif lives < ttl then
		lives = ttl + floor_of(ttl / 8)
		call('PEXPIRE', list, lives)
	end
	local needed = max(lives, record_ttl)
	if tonumber(record[7] or 0) < ms + needed then
		needed = needed + floor_of(record_ttl / 8)
		call('PEXPIRE', at, needed)
		call('HSET', at, 'until', ms + needed)
	end
	if grouped then
		join(at, KEYS[k+each], ARGV[a+4], id, needed)
	end
	if key then
		call('SET', key, id, 'PX', ARGV[4])
	end
	return format('%s\n%d\n0\n%d\n%s\n%s', id, last, ms, generation, server)
end

-- What is wrong with one client is that one's own.
local replies = {}
for i = 1, count do
	local done, reply = pcall(append, i - 1)
	replies[i] = (done or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
