#!lua
-- Makes servers the owners of clients, each under a new generation. A claim that comes late changes
-- nothing: its command was delayed, and its connection may have ended since.
-- For each client:
-- KEYS[k+1] c_{client}
-- KEYS[k+2] mq_c_{client}
-- KEYS[k+3] c_s_{client}
-- ARGV[a+1] user, empty for none
-- ARGV[a+2] server
-- ARGV[a+3] instance of the client, empty if it does not send one
-- ARGV[a+4] attempt of that instance, a number that grows
-- ARGV[a+5] hash of the secret that a client without a user presents; ignored with a user
-- ARGV[a+6] time of the claim on the clock, Unix ms; it may be too early; empty if it is not known
-- For all:
-- ARGV[1] TTL of the records, ms; they may live an eighth longer
-- ARGV[2] minimum that the clock must show, Unix ms
-- ARGV[3] age at which a claim is late, ms
-- returns for each client, separated by newlines: generation, generation until now, acked,
--         messages waiting, last id ever assigned, the clock (Unix ms), 1 if acknowledged messages
--         may have copies that are not withdrawn yet, else 0, 1 if a client without a user may have
--         a list in c_s_, else 0, server until now; -1 if a later attempt of the same instance was
--         bound; -2, the ARGV[a+6] that would not be late, and the clock, if the claim is late; ''
--         if the secret is wrong; or an error
-- cost O(clients)

local max, floor = math.max, math.floor
local ttl, eighth, max_age = tonumber(ARGV[1]), floor(ARGV[1] / 8), tonumber(ARGV[3])
local now = call('TIME')
local ms = max(now[1] * 1000 + floor(now[2] / 1000), tonumber(ARGV[2]))

-- Few clients have a list.
local unlisted = find_empty(#KEYS / 3, function(i)
	return ARGV[6 * i - 2] == '' and KEYS[3 * i]
end)

local function bind(i)
	local k, a = 3 * i - 3, 6 * i - 3
	-- until is the earliest time of the record's expiry, see append_client. A client that
	-- reconnects soon does not renew it.
	local record = call('HMGET', KEYS[k+1], 'user', 'server', 'generation', 'acked', 'last', 'instance', 'attempt', 'until',
		'first', 'secret')
	local user, server, prev_generation, acked = record[1] or '', record[2] or '', record[3] or '0', record[4] or '0'
	local last, queued = record[5] or '0', call('LLEN', KEYS[k+2])
	-- A record without a generation was made by a push, and belongs to no client yet.
	local anonymous, bound = ARGV[a+1] == '', prev_generation ~= '0'
	if bound and anonymous and record[10] ~= ARGV[a+5] then
		return ''
	end
	if ARGV[a+3] ~= '' and record[6] == ARGV[a+3] and tonumber(record[7] or 0) > tonumber(ARGV[a+4]) then
		return '-1'
	end
	local asked, bound_at = tonumber(ARGV[a+6]), 1577836800000 + floor(prev_generation / 4096)
	if asked and (ms - asked > max_age or bound and bound_at > asked) then
		return format('-2\n%d\n%d', max(ms, bound_at), ms)
	end
	local tail = queued > 0 and string.match(call('LINDEX', KEYS[k+2], '-1'), '^(%d+):')
	if tail and tonumber(tail) > tonumber(last) and tonumber(tail) <= 9007199254740991 then
		last = tail -- a message of another writer: last does not include it
	end
	if bound and user ~= ARGV[a+1] then
		-- An older version of the broker bound the client to another user. Messages of the former user
		-- are not a gap. Ids continue, since they must grow while the record lives.
		call('DEL', KEYS[k+2])
		queued, acked, record[9] = 0, last, nil
		call('HSET', KEYS[k+1], 'acked', acked, 'floor', '0', 'last', last)
		call('HDEL', KEYS[k+1], 'first', 'secret')
	end

	local generation = format('%d', max((ms - 1577836800000) * 4096, tonumber(prev_generation) + 1))
	local fields = {'user', ARGV[a+1], 'server', ARGV[a+2], 'generation', generation, 'since', format('%d', ms)}
	local function set(name, value)
		fields[#fields + 1], fields[#fields + 2] = name, value
	end
	if anonymous then
		set('secret', ARGV[a+5])
	end
	if ARGV[a+3] ~= '' then
		set('instance', ARGV[a+3])
		set('attempt', ARGV[a+4])
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
		set('until', format('%d', ms + needed))
	end
	call('HSET', KEYS[k+1], unpack(fields))
	if renew then
		call('PEXPIRE', KEYS[k+1], needed)
	end
	local withdrawal_due = record[9] and tonumber(record[9]) <= tonumber(acked) and 1 or 0
	local subscribed = anonymous and not unlisted[i] and call('EXISTS', KEYS[k+3]) or 0
	return format('%s\n%s\n%s\n%d\n%s\n%d\n%d\n%d\n%s', generation, prev_generation, acked, queued, last, ms,
		withdrawal_due, subscribed, server)
end

return each_head(#KEYS / 3, bind)
