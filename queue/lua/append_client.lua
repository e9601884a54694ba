#!lua
-- Stores one message for a client under the next id, drops the oldest while the list is
-- over its cap, and returns the owner.
-- KEYS[1] c_{client}
-- KEYS[2] mq_c_{client}
-- KEYS[3] mq_kc_{client}:<key>, left out without an idempotency key
-- ARGV[1] data, compact JSON
-- ARGV[2] user whose client it must be, empty for anybody's
-- ARGV[3] cap, messages
-- ARGV[4] TTL that the list must have at least, ms; it may get an eighth more
-- ARGV[5] TTL of the record, ms; likewise, and never less than the list has
-- ARGV[6] TTL of the idempotency key, ms
-- ARGV[7] what the clock must show at least, Unix ms
-- ARGV[8] 1 when this Redis may have taken another's place lately, else 0
-- ARGV[9] 1 when the caller waits for replicas, left out else: a duplicate writes its idempotency
--         key again then, since a WAIT covers what was written on its own connection
-- returns {id, id before it, duplicate 0 or 1, server, generation, what the clock shows, Unix ms, 0 for a
-- duplicate}; {} when the client is not the user's
-- cost O(1 + messages dropped)

local call = redis.call
-- until is when the record expires at the earliest, so that not each push need renew it: see append_channel.
local record = call('HMGET', KEYS[1], 'user', 'server', 'generation', 'last', 'acked', 'floor', 'until')
if ARGV[2] ~= '' and record[1] ~= ARGV[2] then
	return {}
end
local server, generation = record[2] or '', record[3] or '0'
if KEYS[3] then
	local first = call('GET', KEYS[3])
	if first then
		if ARGV[9] then
			call('SET', KEYS[3], first, 'KEEPTTL')
		end
		return {first, 0, 1, server, generation, 0}
	end
end

local function id_of(element)
	local id = tonumber(string.match(element or '', '^(%d+):'))
	return id and id <= 9007199254740991 and id or nil
end

local last, floor = tonumber(record[4] or 0), tonumber(record[6] or 0)
local tail = call('LINDEX', KEYS[2], '-1')
if tail then
	last = math.max(last, id_of(tail) or 0) -- a backend that writes by itself leaves its id here only
elseif last > math.max(tonumber(record[5] or 0), floor) then
	floor = last -- the list expired
end

local now = call('TIME')
local ms = math.max(now[1] * 1000 + math.floor(now[2] / 1000), tonumber(ARGV[7]))
local id = string.format('%d', math.max((ms - 1577836800000) * 4096, last + 1))
local ttl, eighth = tonumber(ARGV[4]), math.floor(ARGV[4] / 8)
local lives = tail and call('PTTL', KEYS[2]) or -1
local surplus = call('RPUSH', KEYS[2], id .. ':' .. ARGV[1]) - tonumber(ARGV[3])
if surplus > 0 then
	for _, oldest in ipairs(call('LPOP', KEYS[2], surplus)) do
		floor = math.min(math.max(floor, id_of(oldest) or 0), last)
	end
end

if floor == tonumber(record[6] or -1) then
	call('HSET', KEYS[1], 'last', id)
else
	call('HSET', KEYS[1], 'last', id, 'floor', floor)
end
if ARGV[8] == '1' then
	-- The first message in a history of its own: between it and the last one this store never had any. An
	-- acknowledgement of it says nothing of those that the store before may have had there.
	local info = redis.pcall('INFO', 'replication')
	local history = type(info) == 'string' and string.match(info, 'master_replid:(%x+)')
	if history and history ~= call('HGET', KEYS[1], 'history') then
		call('HSET', KEYS[1], 'history', history, 'cut', last, 'cut_to', id)
	end
end
if not tail then
	lives = ttl -- the usual case, a client that has acknowledged all
	call('PEXPIRE', KEYS[2], lives)
elseif lives < ttl then
	lives = ttl + eighth
	call('PEXPIRE', KEYS[2], lives)
end
local needed = math.max(lives, tonumber(ARGV[5]))
if tonumber(record[7] or 0) < ms + needed then
	needed = needed + math.floor(ARGV[5] / 8)
	call('PEXPIRE', KEYS[1], needed)
	call('HSET', KEYS[1], 'until', ms + needed)
end
if KEYS[3] then
	call('SET', KEYS[3], id, 'PX', ARGV[6])
end
return {id, last, 0, server, generation, ms}
