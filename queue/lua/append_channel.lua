#!lua
-- Stores one message in each of many channels with append.lua, and then reads the servers with
-- subscribers. Either all messages have an idempotency key, or none.
-- For each channel:
-- KEYS[k+1] mq_ch_{channel}
-- KEYS[k+2] mq_m_{channel}
-- KEYS[k+3] ch_{channel}
-- KEYS[k+4] mq_k_{channel}:<key>, omitted without an idempotency key
-- ARGV[7+i] data, compact JSON
-- For all, in addition to append.lua:
-- ARGV[5] TTL of the idempotency keys, ms
-- ARGV[7] 1 or 3 if the callers wait for replicas, see append.lua
-- returns for each channel, separated by newlines: id, id before it, duplicate 0 or 1, the
--         clock (Unix ms), the servers; or an error. The id is 0 if nothing was stored, see
--         ARGV[7]. A duplicate has the value of the idempotency key in place of the id
-- cost O(log n) for each message stored or dropped, O(servers)

local keys_per_channel = #KEYS / (#ARGV - 7)

local function append_channel(i)
	local k = (i - 1) * keys_per_channel
	local position, key = KEYS[k+2], keys_per_channel == 4 and KEYS[k+4]
	if key then
		local first = call('GET', key)
		if first then
			if ARGV[7] == '1' or ARGV[7] == '3' then
				-- A WAIT covers only writes on its own connection.
				call('SET', key, first, 'KEEPTTL')
			end
			return format('%s\n0\n1\n%d\n%s', first, ms, table.concat(call('SMEMBERS', KEYS[k+3]), '\n'))
		end
	end
	local meta = call('HMGET', position, 'last', 'floor', 'bytes', 'until', 'st_keep')
	local id, last = append(KEYS[k+1], position, meta, ARGV[7+i])
	if not id then
		return format('0\n0\n0\n%d\n', ms)
	end
	if key then
		call('SET', key, id, 'PX', ARGV[5])
	end
	return format('%s\n%d\n0\n%d\n%s', id, last, ms, table.concat(call('SMEMBERS', KEYS[k+3]), '\n'))
end

-- An error of one channel does not affect the others.
local replies = {}
for i = 1, #ARGV - 7 do
	local ok, reply = pcall(append_channel, i)
	replies[i] = (ok or type(reply) == 'table') and reply or redis.error_reply('ERR ' .. reply)
end
return replies
