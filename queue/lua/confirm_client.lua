#!lua
-- Checks that the store still has a message whose push it acknowledged. If it lost the message, as
-- in a failover, the script appends a marker that reports the loss to the client, unless there is
-- one already for this message or a later one.
-- KEYS[1] c_{client}
-- KEYS[2] mq_c_{client}
-- KEYS[3] mq_f_{client}
-- ARGV[1] id of the message
-- ARGV[2] minimum TTL of the list, ms
-- ARGV[3] TTL of the record, ms
-- ARGV[4] minimum that the clock must show, Unix ms
-- returns {} if the message is not lost, else {id of the marker, id before it, its payload, server}
-- cost O(messages above the id)

local function id_of(element)
	local id = tonumber(string.match(element or '', '^(%d+):'))
	return id and id <= 9007199254740991 and id or nil
end

local record = redis.call('HMGET', KEYS[1], 'server', 'last', 'acked', 'floor', 'lost', 'cut', 'cut_to', 'older_cut', 'older_cut_to', 'older_lost')
local last, after = tonumber(record[2] or 0), math.max(tonumber(record[3] or 0), tonumber(record[4] or 0))
local id = tonumber(ARGV[1])
-- inside returns the lower id of a cut, if the id is inside the cut, else nil.
local function inside(from, to)
	from, to = tonumber(from or 0), tonumber(to or 0)
	return id > from and id < to and from or nil
end
-- A cut is a pair of ids without messages between them in this store, see append_client. A message
-- with an id inside is lost, even if a later one was acknowledged. There are two cuts, since a
-- second failover may come before the losses of the first one are confirmed.
local cut, older_cut = inside(record[6], record[7]), inside(record[8], record[9])
local lost_field, reported = 'lost', tonumber(record[5] or record[10] or 0)
if not cut and older_cut then
	cut, lost_field, reported = older_cut, 'older_lost', tonumber(record[10] or 0)
end
if id <= reported or (id <= after and not cut) then
	return {}
end
if redis.call('ZSCORE', KEYS[3], ARGV[1]) then
	return {} -- withdrawn
end
local held = redis.call('LLEN', KEYS[2])
if cut then
	after, last = cut, math.max(last, id_of(redis.call('LINDEX', KEYS[2], -1)) or 0)
	held = 0
elseif held == 0 and last >= id then
	return {} -- the list expired
end
local from = held - 1
while from >= 0 do
	local chunk = redis.call('LRANGE', KEYS[2], math.max(from - 63, 0), from)
	for i = #chunk, 1, -1 do
		local found = id_of(chunk[i]) or math.huge
		last = math.max(last, found ~= math.huge and found or 0)
		if found == id then
			return {}
		end
		if found < id then
			after, from = math.max(after, found), 0
			break
		end
	end
	from = from - 64
end

local now = redis.call('TIME')
local ms = math.max(now[1] * 1000 + math.floor(now[2] / 1000), tonumber(ARGV[4]))
-- The marker's id is above the lost id too, since no id is assigned twice.
local marker = string.format('%.0f', math.max((ms - 1577836800000) * 4096, last + 1, id + 1))
local payload = '!' .. string.format('%.0f', after) .. '-' .. ARGV[1]
local ttl = math.max(tonumber(ARGV[2]), redis.call('PTTL', KEYS[2]))
redis.call('RPUSH', KEYS[2], marker .. ':' .. payload)
redis.call('HSET', KEYS[1], 'last', marker, lost_field, ARGV[1], 'until', '0')
-- The marker may be the first entry of a new replication history, see append_client.
local info = redis.pcall('INFO', 'replication')
local history = type(info) == 'string' and string.match(info, 'master_replid:(%x+)')
local known = redis.call('HGET', KEYS[1], 'history')
if history and history ~= known then
	-- The newer cut becomes the older one, and keeps the highest id reported in it.
	local older_lost = cut and lost_field == 'lost' and ARGV[1] or record[5] or '0'
	redis.call('HSET', KEYS[1], 'history', history, 'cut', string.format('%.0f', last), 'cut_to', marker,
		'older_cut', record[6] or '0', 'older_cut_to', record[7] or '0', 'older_lost', older_lost)
end
redis.call('PEXPIRE', KEYS[2], ttl)
redis.call('PEXPIRE', KEYS[1], math.max(ttl, tonumber(ARGV[3])))
return {marker, string.format('%.0f', last), payload, record[1] or ''}
