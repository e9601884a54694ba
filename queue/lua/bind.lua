#!lua
-- Makes servers the owners of clients, each under a new generation.
-- Of each client:
-- KEYS[k+1] c_{client}
-- KEYS[k+2] mq_c_{client}
-- ARGV[a+1] user, empty for none
-- ARGV[a+2] server
-- ARGV[a+3] instance of the client, empty when it does not say
-- ARGV[a+4] attempt of that instance, a number that grows
-- ARGV[a+5] hash of the secret that a client without a user presents; not read with a user
-- For all:
-- ARGV[1] TTL of the records, ms; they may live an eighth longer
-- ARGV[2] what the clock must show at least, Unix ms
-- returns for each, with newlines between: generation, generation until now, acked, messages waiting, last id ever
--         assigned, what the clock shows (Unix ms), 1 when first pushes were acknowledged and may not be withdrawn from the
--         user's other clients yet, else 0, server until now; -1 when a later attempt of the
--         same instance bound it already; '' when the secret is not that of the client; or its error
-- cost O(clients)

local call, format, max = redis.call, string.format, math.max
local ttl, eighth = tonumber(ARGV[1]), math.floor(ARGV[1] / 8)
local now = call('TIME')
local ms = max(now[1] * 1000 + math.floor(now[2] / 1000), tonumber(ARGV[2]))

local function bind(k, a)
	-- until is when the record expires at the earliest: see append_client. A client that comes back soon renews nothing.
	local record = call('HMGET', KEYS[k+1], 'user', 'server', 'generation', 'acked', 'last', 'instance', 'attempt', 'until',
		'first', 'secret')
	local user, server, before, acked = record[1] or '', record[2] or '', record[3] or '0', record[4] or '0'
	local last, queued = record[5] or '0', call('LLEN', KEYS[k+2])
	-- A record that was never bound is of a push that came first: it is of no one yet.
	local anonymous, bound = ARGV[a+1] == '', before ~= '0'
	if bound and anonymous and record[10] ~= ARGV[a+5] then
		return ''
	end
	if ARGV[a+3] ~= '' and record[6] == ARGV[a+3] and tonumber(record[7] or 0) > tonumber(ARGV[a+4]) then
		return '-1'
	end
	local tail = queued > 0 and string.match(call('LINDEX', KEYS[k+2], '-1'), '^(%d+):')
	if tail and tonumber(tail) > tonumber(last) and tonumber(tail) <= 9007199254740991 then
		last = tail -- a backend that writes by itself leaves its id here only
	end
	if bound and user ~= ARGV[a+1] then
		-- An older version left this record: the name says whose the client is. What the former user missed is no gap.
		-- Ids go on, since they must grow as long as the record lives.
		call('DEL', KEYS[k+2])
		queued, acked, record[9] = 0, last, nil
		call('HSET', KEYS[k+1], 'acked', acked, 'floor', '0', 'last', last)
		call('HDEL', KEYS[k+1], 'first', 'secret')
	end

	local generation = format('%d', max((ms - 1577836800000) * 4096, tonumber(before) + 1))
	local fields = {'user', ARGV[a+1], 'server', ARGV[a+2], 'generation', generation, 'since', format('%d', ms)}
	local function also(name, value)
		fields[#fields + 1], fields[#fields + 2] = name, value
	end
	if anonymous then
		also('secret', ARGV[a+5])
	end
	if ARGV[a+3] ~= '' then
		also('instance', ARGV[a+3])
		also('attempt', ARGV[a+4])
	elseif record[6] then
		call('HDEL', KEYS[k+1], 'instance', 'attempt')
	end
	local needed = ttl
	if queued > 0 then
		needed = max(needed, call('PTTL', KEYS[k+2]))
	end
	local renew = tonumber(record[8] or 0) < ms + needed
	if renew then
		needed = needed + eighth
		also('until', format('%d', ms + needed))
	end
	call('HSET', KEYS[k+1], unpack(fields))
	if renew then
		call('PEXPIRE', KEYS[k+1], needed)
	end
	local owes = record[9] and tonumber(record[9]) <= tonumber(acked) and 1 or 0
	return format('%s\n%s\n%s\n%d\n%s\n%d\n%d\n%s', generation, before, acked, queued, last, ms, owes, server)
end

-- What is wrong with one client is that one's own.
local replies = {}
for i = 1, #KEYS / 2 do
	local done, reply = pcall(bind, 2 * i - 2, 5 * i - 3)
	replies[i] = (done or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
